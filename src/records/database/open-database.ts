import { Kysely } from "kysely";
import type { Changes } from "./changes.ts";
import { migrate, migrateFile } from "./migrate.ts";
import { sqliteMigrations } from "./migrations.ts";
import { createOnlyReplica } from "./replica.ts";
import type { Schema } from "./schema.ts";
import { openMemoryDatabase, sqliteDialect } from "./sqlite-dialect.ts";
import type { Database } from "./store.ts";

/**
 * Opens a database at the present schema: that of a PostgreSQL server (`postgres://…`), a file of
 * SQLite, or `:memory:`. What other processes change there is published to `changes`.
 * @throws UnusableDatabaseError
 */
export async function openDatabase(database: string, changes: Changes): Promise<Database> {
  if (!/^postgres(ql)?:/.test(database)) return openSqlite(database);
  // A service without a server does not load its driver.
  const { openPostgres } = await import("./open-postgres.ts");
  return openPostgres(database, changes);
}

async function openSqlite(path: string): Promise<Database> {
  const db = path === ":memory:" ? await openMemory() : await openFile(path);
  return {
    db,
    replica: createOnlyReplica(),
    announce: async () => {},
    close: () => db.destroy(),
  };
}

async function openFile(path: string): Promise<Kysely<Schema>> {
  await migrateFile(path, sqliteMigrations);
  return new Kysely<Schema>({ dialect: sqliteDialect(path) });
}

/** An empty database in memory: to copy it takes a thirtieth of the time of its migrations. */
let migrated: Uint8Array | undefined;

async function openMemory(): Promise<Kysely<Schema>> {
  const opened = openMemoryDatabase();
  const db = new Kysely<Schema>({ dialect: sqliteDialect(":memory:", { opened }) });
  if (migrated === undefined) {
    await migrate(db, sqliteMigrations);
    migrated = opened.serialize();
  } else {
    opened.deserialize(migrated);
  }
  return db;
}
