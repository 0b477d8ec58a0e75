import type { Kysely } from "kysely";
import { Changes } from "../../src/records/database/changes.ts";
import { openDatabase } from "../../src/records/database/open-database.ts";
import type { Schema } from "../../src/records/database/schema.ts";
import { testDatabase } from "../support/test-database.ts";

/** The database of records that are not opened. */
export async function openTestDatabase(): Promise<{ db: Kysely<Schema> } & AsyncDisposable> {
  const { db, close } = await openDatabase(await testDatabase(), new Changes());
  return { db, [Symbol.asyncDispose]: close };
}
