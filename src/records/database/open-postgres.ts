import { setTimeout as delay } from "node:timers/promises";
import { Kysely, sql } from "kysely";
import { Client } from "pg";
import { formatNotices, noticeChannel, parseNotice } from "./change-notices.ts";
import type { Changes, CommittedChanges } from "./changes.ts";
import { lockIds } from "./lock-ids.ts";
import { migrate } from "./migrate.ts";
import { postgresConnectionOptions } from "./postgres-connection-options.ts";
import { postgresDialect } from "./postgres-dialect.ts";
import { translatePostgresError, UnusableDatabaseError } from "./postgres-errors.ts";
import { postgresMigrations } from "./migrations.ts";
import { newReplicaId, type Replica } from "./replica.ts";
import type { Schema } from "./schema.ts";
import type { Database } from "./store.ts";

/**
 * Opens the database of a server, which belongs to one service with all its replicas.
 * @throws UnusableDatabaseError
 */
export async function openPostgres(url: string, changes: Changes): Promise<Database> {
  await using stack = new AsyncDisposableStack();
  const db = new Kysely<Schema>({ dialect: postgresDialect(url) });
  stack.defer(() => db.destroy());
  await prepareSchema(db);
  const replica = await joinReplicas(url, {
    onEffects: (effects) => changes.publishRemoteCommit(effects),
    onGap: () => changes.publishGap(),
  });
  stack.defer(() => replica.close());
  const opened = stack.move();
  return {
    db,
    replica,
    async announce(trx, effects) {
      const notices = formatNotices(replica.id, effects);
      if (notices.length === 0) return;
      const texts = sql`unnest(${notices}::text[]) as notices (text)`;
      await sql`select pg_notify(${noticeChannel}, text) from ${texts}`.execute(trx);
    },
    close: () => opened.disposeAsync(),
  };
}

/** @throws UnusableDatabaseError */
async function prepareSchema(db: Kysely<Schema>): Promise<void> {
  const applied = await readAppliedMigrations(db);
  const unknown = applied.find((name) => !(name in postgresMigrations));
  if (unknown !== undefined) {
    const written = "The database was written by a newer version of the service";
    throw new UnusableDatabaseError(`${written}, which has the migration "${unknown}"`);
  }
  if (applied.length < Object.keys(postgresMigrations).length) {
    await migrate(db, postgresMigrations);
  }
}

async function readAppliedMigrations(db: Kysely<Schema>): Promise<string[]> {
  try {
    const encoding = await sql<{ encoding: string; known: string | null }>`
      select current_setting('server_encoding') as encoding,
        to_regclass('kysely_migration')::text as known`.execute(db);
    const [found] = encoding.rows;
    if (found?.encoding !== "UTF8") {
      const message = `The database has the encoding "${found?.encoding}"; it has to be UTF8`;
      throw new UnusableDatabaseError(message);
    }
    if (found.known === null) return [];
    const { rows } = await sql<{ name: string }>`select name from kysely_migration`.execute(db);
    return rows.map(({ name }) => name);
  } catch (cause) {
    if (cause instanceof UnusableDatabaseError) throw cause;
    const reason = cause instanceof Error ? (cause.cause ?? cause) : cause;
    throw new UnusableDatabaseError(`The database cannot be used: ${String(reason)}`, { cause });
  }
}

/** Between two heartbeats, which check the connection and the leader's lock. */
const heartbeatMs = 2_000;
const reconnectMs = 500;
/** Time for an answer, after which the connection counts as lost. */
const answerMs = 10_000;
/** After a connection was lost: others notice within an answer's time, and reconnect in as long. */
const othersReconnectMs = 30_000;
/** Makes the server notice within half a minute, not hours, that a replica's machine is gone. */
const keepAlive = [
  "tcp_keepalives_idle=10",
  "tcp_keepalives_interval=5",
  "tcp_keepalives_count=3",
  "tcp_user_timeout=20000",
];

interface ReplicaListener {
  /** What another replica committed. */
  readonly onEffects: (effects: CommittedChanges) => void;
  /** Other replicas may have committed something without a notice to this one. */
  readonly onGap: () => void;
}

/**
 * Makes this process a replica: it hears what others commit, and its locks, which the server frees
 * when its connection ends, say that it runs. A connection that is lost is made again.
 */
async function joinReplicas(
  url: string,
  listener: ReplicaListener,
): Promise<Replica & { close(): Promise<void> }> {
  const id = newReplicaId();
  const closing = new AbortController();
  const { signal } = closing;
  let session: Session | undefined = await openReplicaSession(url, id, listener);
  let reconnectedAt = -Infinity;

  async function keepSession(): Promise<void> {
    while (!signal.aborted) {
      if (session?.isOpen !== true) session = await reopen();
      else await session.heartbeat();
      await delay(session === undefined ? reconnectMs : heartbeatMs, undefined, { signal }).catch(
        () => {},
      );
    }
  }

  async function reopen(): Promise<Session | undefined> {
    const opened = await openReplicaSession(url, id, listener).catch(() => undefined);
    if (opened === undefined) return undefined;
    reconnectedAt = performance.now();
    listener.onGap();
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
    isListComplete: () => performance.now() - reconnectedAt >= othersReconnectMs,
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
    if (notice === undefined) listener.onGap();
    else if (notice.replica !== id) listener.onEffects(notice.effects);
  });
  try {
    await client.connect();
    await client.query(`listen ${noticeChannel}`);
    await client.query("select pg_advisory_lock_shared($1, $2)", [lockIds.replica, id]);
    await session.heartbeat();
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

  /** Checks the connection and whether there is a leader. */
  async heartbeat(): Promise<void> {
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
