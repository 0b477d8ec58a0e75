import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";
import type { Effects } from "./effects.ts";
import { newReplicaId, type Replica } from "./replica.ts";
import { noticeChannel, parseNotice } from "./change-notices.ts";
import { postgresConnectionOptions } from "./postgres-connection-options.ts";
import { lockIds } from "./lock-ids.ts";
import { translatePostgresError } from "./translate-postgres-error.ts";

/** Between two looks at the connection and at the leader's lock. */
const lookMs = 2_000;
const reconnectMs = 500;
/** Time for an answer, after which the connection counts as lost. */
const answerMs = 10_000;
/** By which the server finds that a replica's machine is gone: within half a minute, not hours. */
const keepAlive = [
  "tcp_keepalives_idle=10",
  "tcp_keepalives_interval=5",
  "tcp_keepalives_count=3",
  "tcp_user_timeout=20000",
];

interface ReplicaListener {
  /** What another replica committed. */
  readonly onEffects: (effects: Effects) => void;
  /** Other replicas may have committed something of which this one got no notice. */
  readonly onMissed: () => void;
}

interface JoinedReplica extends Replica {
  close(): Promise<void>;
}

/**
 * Makes this process a replica: it hears what others commit, and its locks, which the server frees
 * when its connection ends, say that it runs. A connection that is lost is made again.
 */
export async function joinReplicas(url: string, listener: ReplicaListener): Promise<JoinedReplica> {
  const id = newReplicaId();
  const closing = new AbortController();
  const { signal } = closing;
  let session: Session | undefined = await openReplicaSession(url, id, listener);

  async function keepSession(): Promise<void> {
    while (!signal.aborted) {
      if (session?.isOpen !== true) session = await reopen();
      else await session.look();
      await delay(session === undefined ? reconnectMs : lookMs, undefined, { signal }).catch(
        () => {},
      );
    }
  }

  async function reopen(): Promise<Session | undefined> {
    const opened = await openReplicaSession(url, id, listener).catch(() => undefined);
    if (opened !== undefined) listener.onMissed();
    return opened;
  }

  const keeping = keepSession();
  return {
    id,
    isShared: true,
    isLeader: () => session?.isOpen === true && session.isLeading,
    listRunning: async () => {
      if (session === undefined) throw translatePostgresError(new Error("Connection terminated"));
      return session.listRunning();
    },
    async close() {
      closing.abort();
      await keeping;
      await session?.end();
    },
  };
}

async function openReplicaSession(
  url: string,
  id: number,
  listener: ReplicaListener,
): Promise<Session> {
  const options = keepAlive.map((setting) => `-c ${setting}`).join(" ");
  const timeout = { query_timeout: answerMs };
  const client = new Client({ ...postgresConnectionOptions(url), ...timeout, options });
  const session = new Session(client);
  client.on("notification", ({ payload = "" }) => {
    const notice = parseNotice(payload);
    if (notice === undefined) listener.onMissed();
    else if (notice.replica !== id) listener.onEffects(notice.effects);
  });
  try {
    await client.connect();
    await client.query(`listen ${noticeChannel}`);
    await client.query("select pg_advisory_lock_shared($1, $2)", [lockIds.replica, id]);
    await session.look();
    return session;
  } catch (error) {
    await session.end();
    throw translatePostgresError(error);
  }
}

/** One connection, for as long as it lasts. */
class Session {
  readonly #client: Client;
  isOpen = true;
  isLeading = false;

  constructor(client: Client) {
    this.#client = client;
    const onLost = () => (this.isOpen = false);
    client.on("error", onLost);
    client.on("end", onLost);
  }

  /** Looks whether the connection is there and whether there is a leader. */
  async look(): Promise<void> {
    try {
      const text = this.isLeading
        ? "select true as leads"
        : `select pg_try_advisory_lock(${lockIds.leading}, 0) as leads`;
      const { rows } = await this.#client.query<{ leads: boolean }>(text);
      this.isLeading = rows[0]?.leads === true;
    } catch {
      await this.end();
    }
  }

  async listRunning(): Promise<ReadonlySet<number>> {
    const { rows } = await this.#client.query<{ id: number }>(
      `select distinct objid::bigint as id from pg_locks
       where locktype = 'advisory' and classid = $1 and objsubid = 2 and granted
         and database = (select oid from pg_database where datname = current_database())`,
      [lockIds.replica],
    );
    return new Set(rows.map(({ id }) => id));
  }

  /** Does not wait for a server that does not answer. */
  async end(): Promise<void> {
    this.isOpen = false;
    await Promise.race([this.#client.end().catch(() => {}), delay(1_000)]);
  }
}
