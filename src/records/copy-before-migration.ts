import { open, readdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type Kysely, sql } from "kysely";
import type { Schema } from "./schema.ts";

/**
 * Copies a database next to itself, as `NAME.before-MIGRATION`, for those who want to go back to
 * the version before. The copy of an earlier migration is removed then: one is kept.
 */
export async function copyBeforeMigration(
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
