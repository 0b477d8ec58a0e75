import { Kysely } from "kysely";
import type { Schema } from "../../src/records/schema.ts";
import { sqliteDialect } from "../../src/records/sqlite-dialect.ts";

/** A database in memory, without tables. */
export async function openTestDatabase(): Promise<Kysely<Schema> & AsyncDisposable> {
  return new Kysely<Schema>({ dialect: sqliteDialect(":memory:") });
}
