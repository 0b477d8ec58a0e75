import { type Kysely, sql } from "kysely";
import { Changes } from "./database/changes.ts";
import { openDatabase } from "./database/open-database.ts";
import type { Schema } from "./database/schema.ts";
import {
  countRows,
  firstRowTables,
  hashRows,
  readRows,
  type Row,
  tableKeys,
  type TableName,
} from "./database/table-keys.ts";
import { UnusableDatabaseError } from "./database/postgres-errors.ts";

const tables = Object.keys(tableKeys) as TableName[];

interface Move {
  /** Of SQLite, which nobody writes to meanwhile. */
  readonly from: Kysely<Schema>;
  /** Of PostgreSQL. */
  readonly to: Kysely<Schema>;
}

/**
 * Copies all records of a file into a PostgreSQL database that has none, or a part of the same ones
 * from a move that was interrupted. In the end counts and hashes of all tables are equal.
 * @returns how many rows there are
 * @throws UnusableDatabaseError
 */
export async function moveRecords(path: string, url: string): Promise<number> {
  await using stack = new AsyncDisposableStack();
  const source = await openDatabase(path, new Changes());
  stack.defer(() => source.close());
  const target = await openDatabase(url, new Changes());
  stack.defer(() => target.close());
  if ((await target.replica.listRunning()).size > 1) {
    throw new UnusableDatabaseError("Another process uses the database: stop that first");
  }
  const move: Move = { from: source.db, to: target.db };
  await deleteFirstRows(move);
  for (const table of tables) await requireSameStart(move, table);
  for (const table of tables) await copyTable(move, table);
  let rows = 0;
  for (const table of tables) rows += await requireEqual(move, table);
  return rows;
}

/** Of a database in which nothing else is yet. */
async function deleteFirstRows({ to }: Move): Promise<void> {
  const isFirst = (table: TableName) => firstRowTables.some((first) => first === table);
  for (const table of tables) {
    const rows = await countRows(to, table);
    if (rows > (isFirst(table) ? 1 : 0)) return;
  }
  for (const table of firstRowTables) await sql`delete from ${sql.table(table)}`.execute(to);
}

/** @returns the last row that is there */
async function requireSameStart({ from, to }: Move, table: TableName): Promise<Row | undefined> {
  const count = await countRows(to, table);
  const [before, after] = [await hashRows(from, table, count), await hashRows(to, table, count)];
  if (before.hash === after.hash) return after.last;
  const message = `The database has other records: its table "${table}" differs`;
  throw new UnusableDatabaseError(message);
}

async function copyTable(move: Move, table: TableName): Promise<void> {
  const start = await requireSameStart(move, table);
  for await (const rows of readRows(move.from, table, { start, count: Infinity })) {
    await insertRows(move.to, table, rows);
  }
}

/** Without triggers: what they would count and number is copied too. */
async function insertRows(
  db: Kysely<Schema>,
  table: TableName,
  rows: readonly Row[],
): Promise<void> {
  const names = Object.keys(rows[0] ?? {});
  const values = rows.map((row) => sql`(${sql.join(names.map((name) => row[name]))})`);
  const columns = sql.join(names.map((name) => sql.ref(name)));
  const target = sql.table(table);
  await db.transaction().execute(async (trx) => {
    await sql`alter table ${target} disable trigger user`.execute(trx);
    await sql`insert into ${target} (${columns}) values ${sql.join(values)}`.execute(trx);
    await sql`alter table ${target} enable trigger user`.execute(trx);
  });
}

async function requireEqual({ from, to }: Move, table: TableName): Promise<number> {
  const count = await countRows(from, table);
  const [before, after] = [await hashRows(from, table, count), await hashRows(to, table, count)];
  if ((await countRows(to, table)) === count && before.hash === after.hash) return count;
  throw new UnusableDatabaseError(`The table "${table}" is not the same in both databases`);
}
