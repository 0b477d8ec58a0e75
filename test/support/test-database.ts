import { randomUUID } from "node:crypto";
import { Client } from "pg";
import { openRecords } from "../../src/records/open-records.ts";

/** Names a server whose databases the tests use, in place of SQLite's in memory. */
export const serverVariable = "MOS_TEST_DATABASE_URL";
const template = "mos_template";

/** Databases of this process' tests that have ended, most of them. */
const made: string[] = [];

/** An empty database: in memory, or on the server that the environment names. */
export async function testDatabase(): Promise<string> {
  const server = process.env[serverVariable];
  if (server === undefined) return ":memory:";
  return withClient(server, async (client) => {
    for (const name of made.splice(0)) {
      await client.query(`drop database ${name}`).catch(() => made.push(name));
    }
    const name = `test_${randomUUID().replaceAll("-", "")}`;
    await client.query(`create database ${name} template ${template}`);
    made.push(name);
    return databaseUrl(server, name);
  });
}

/** Makes the database that those of tests are copies of. */
export async function prepareTestDatabases(server: string): Promise<void> {
  await withClient(server, (client) => client.query(`create database ${template}`));
  await (await openRecords(databaseUrl(server, template), { now: () => new Date() })).close();
}

function databaseUrl(server: string, name: string): string {
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

async function withClient<T>(url: string, use: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
