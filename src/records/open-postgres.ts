import { Kysely, sql } from "kysely";
import type { Changes } from "./changes.ts";
import { migrate } from "./migrate.ts";
import type { Schema } from "./schema.ts";
import type { Database } from "./store.ts";
import { UnusableDatabaseError } from "./unusable-database-error.ts";
import { formatNotices, noticeChannel } from "./change-notices.ts";
import { joinReplicas } from "./join-replicas.ts";
import { postgresDialect } from "./postgres-dialect.ts";
import { postgresMigrations } from "./postgres-migrations.ts";

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
    onEffects: (effects) => changes.publishElsewhere(effects),
    onMissed: () => changes.publishMissed(),
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
