import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";

/** Where a test may make a database file. */
export async function databasePath(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "records-"));
  t.after(() => rm(folder, { recursive: true }));
  return join(folder, "records.db");
}
