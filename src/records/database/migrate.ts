import { open, readdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Kysely, sql } from "kysely";
import { Migrator } from "kysely/migration";
import type { Migrations } from "./migrations.ts";
import { UnusableDatabaseError } from "./postgres-errors.ts";
import { isBusyError } from "./retry-while-busy.ts";
import type { Schema } from "./schema.ts";
import { sqliteDialect } from "./sqlite-dialect.ts";

/** Applies the migrations that the database lacks. */
export async function migrate(db: Kysely<Schema>, known: Migrations): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => known } });
  const { error } = await migrator.migrateToLatest();
  if (error !== undefined) {
    throw new Error("The database cannot be brought to the present schema", { cause: error });
  }
}

/**
 * Brings a database file to the present schema. One that has content is copied first, and nobody
 * else may have it open: an older service would go on with a schema that it does not know.
 * @throws UnusableDatabaseError
 */
export async function migrateFile(path: string, known: Migrations): Promise<void> {
  const applied = listAppliedMigrations(path);
  const unknown = applied.find((name) => !(name in known));
  if (unknown !== undefined) {
    const written = `The database "${path}" was written by a newer version of the service`;
    throw new UnusableDatabaseError(`${written}, which has the migration "${unknown}"`);
  }
  const first = Object.keys(known).find((name) => !applied.includes(name));
  if (first === undefined) return;
  const db = openExclusively(path);
  try {
    if (applied.length > 0) await copyBeforeMigration(db, path, first);
    await migrate(db, known);
  } finally {
    await db.destroy();
  }
}

function listAppliedMigrations(path: string): string[] {
  const database = new DatabaseSync(path);
  try {
    const isNew =
      database.prepare("select 1 from sqlite_schema where name = 'kysely_migration'").get() ===
      undefined;
    if (isNew) return [];
    return database
      .prepare("select name from kysely_migration")
      .all()
      .map(({ name }) => String(name));
  } finally {
    database.close();
  }
}

function openExclusively(path: string): Kysely<Schema> {
  try {
    return new Kysely<Schema>({ dialect: sqliteDialect(path, { isExclusive: true }) });
  } catch (cause) {
    if (!isBusyError(cause)) throw cause;
    const message = `The database "${path}" has an older schema, and another process has it open`;
    throw new UnusableDatabaseError(`${message}: stop that first`, { cause });
  }
}

/**
 * Copies a database next to itself, as `NAME.before-MIGRATION`, for those who want to go back to
 * the version before. The copy of an earlier migration is removed then: one is kept.
 */
async function copyBeforeMigration(
  db: Kysely<Schema>,
  path: string,
  migration: string,
): Promise<void> {
  const prefix = `${path}.before-`;
  const copy = `${prefix}${migration}`;
  await rm(copy, { force: true });
  // SQLite takes an empty file, and would make one that others can read.
  await (await open(copy, "wx", 0o600)).close();
  await sql`vacuum into ${copy}`.execute(db);
  await using file = await open(copy, "r+");
  await file.sync();
  const folder = dirname(path);
  for (const name of await readdir(folder)) {
    const isFormer = name.startsWith(basename(prefix)) && name !== basename(copy);
    if (isFormer) await rm(join(folder, name));
  }
}
