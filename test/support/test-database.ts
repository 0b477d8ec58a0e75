import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { Pool } from "pg";
import { openRecords } from "../../src/records/open-records.ts";

/** Names a server whose databases the tests use, in place of SQLite's in memory. */
export const serverVariable = "MOS_TEST_DATABASE_URL";
const template = "mos_template";

/** Databases of this process' tests that have ended, most of them. */
const made: string[] = [];
let administration: Pool | undefined;

/** An empty database: in memory, or on the server that the environment names. */
export async function testDatabase(): Promise<string> {
  const server = process.env[serverVariable];
  if (server === undefined) return ":memory:";
  administration ??= openAdministration(server);
  for (const name of made.splice(0)) {
    await administration.query(`drop database ${name}`).catch(() => made.push(name));
  }
  const name = `test_${randomUUID().replaceAll("-", "")}`;
  await administration.query(`create database ${name} template ${template} strategy file_copy`);
  made.push(name);
  return databaseUrl(server, name);
}

/** The same, which is still there when it was closed. */
export async function keptDatabase(t: Pick<TestContext, "after">): Promise<string> {
  if (process.env[serverVariable] !== undefined) return testDatabase();
  const folder = await mkdtemp(join(tmpdir(), "records-"));
  t.after(() => rm(folder, { recursive: true }));
  return join(folder, "records.db");
}

/** Makes the database that those of tests are copies of. */
export async function prepareTestDatabases(server: string): Promise<void> {
  const pool = openAdministration(server);
  await pool.query(`create database ${template}`);
  await pool.end();
  await (await openRecords(databaseUrl(server, template), { now: () => new Date() })).close();
}

function databaseUrl(server: string, name: string): string {
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

/** One connection, on which the process does not wait. */
function openAdministration(server: string): Pool {
  return new Pool({
    connectionString: server,
    max: 1,
    idleTimeoutMillis: 0,
    allowExitOnIdle: true,
  });
}
