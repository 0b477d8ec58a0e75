import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type Kysely, sql } from "kysely";
import { Changes } from "../../src/records/database/changes.ts";
import { openDatabase } from "../../src/records/database/open-database.ts";
import type { Schema } from "../../src/records/database/schema.ts";
import { postgresMissing } from "../support/cluster/cluster-missing.ts";
import { startPostgres } from "../support/postgres-server.ts";

const cleanup = new AsyncDisposableStack();
const owner = { after: (work: () => unknown) => cleanup.defer(async () => void (await work())) };
let url = "";
before(async () => {
  if (!postgresMissing) ({ url } = await startPostgres(owner));
});
after(() => cleanup.disposeAsync());

/** Each column and each index as a line. */
type Describe = (db: Kysely<Schema>) => Promise<string[]>;

interface Line {
  readonly line: string;
}

const describeSqlite: Describe = async (db) => {
  const columns = await sql<Line>`
    select m.name || '.' || c.name || case when c."notnull" or c.pk then ' not null' else '' end as line
    from sqlite_schema m, pragma_table_info(m.name) c
    where m.type = 'table' and m.name not like 'kysely%'`.execute(db);
  const indexes = await sql<Line>`
    select m.name || ' (' || (select group_concat(name) from pragma_index_info(i.name)) || ')' ||
      case when i."unique" then ' unique' else '' end ||
      case when i.partial then ' partial' else '' end as line
    from sqlite_schema m, pragma_index_list(m.name) i
    where m.type = 'table' and m.name not like 'kysely%'`.execute(db);
  return [...columns.rows, ...indexes.rows].map(({ line }) => line).toSorted();
};

const describePostgres: Describe = async (db) => {
  const columns = await sql<Line>`
    select table_name || '.' || column_name ||
      case when is_nullable = 'NO' then ' not null' else '' end as line
    from information_schema.columns
    where table_schema = 'public' and table_name not like 'kysely%'`.execute(db);
  const indexes = await sql<Line>`
    select t.relname || ' (' || (
        select string_agg(a.attname, ',' order by k.n)
        from unnest(i.indkey::int[]) with ordinality k (attnum, n)
        join pg_attribute a on a.attrelid = t.oid and a.attnum = k.attnum) || ')' ||
      case when i.indisunique then ' unique' else '' end ||
      case when i.indpred is not null then ' partial' else '' end as line
    from pg_index i join pg_class t on t.oid = i.indrelid
    where t.relnamespace = 'public'::regnamespace and t.relname not like 'kysely%'`.execute(db);
  return [...columns.rows, ...indexes.rows].map(({ line }) => line).toSorted();
};

async function describe(database: string, describeSchema: Describe): Promise<string[]> {
  const { db, close } = await openDatabase(database, new Changes());
  const lines = await describeSchema(db);
  await close();
  return lines;
}

test("both databases have the same schema", { skip: postgresMissing }, async () => {
  const lines = await describe(url, describePostgres);
  assert.ok(lines.length > 100);
  assert.deepEqual(lines, await describe(":memory:", describeSqlite));
});

test("texts are ordered by their bytes in PostgreSQL", { skip: postgresMissing }, async () => {
  const { db, close } = await openDatabase(url, new Changes());
  const { rows } = await sql<Line>`
    select table_name || '.' || column_name as line from information_schema.columns
    where table_schema = 'public' and table_name not like 'kysely%'
      and data_type in ('text', 'character varying') and domain_name is distinct from 'ordered_text'`.execute(
    db,
  );
  await close();
  assert.deepEqual(rows, []);
});

test("a database of a newer version is refused", { skip: postgresMissing }, async () => {
  const { db, close } = await openDatabase(url, new Changes());
  await sql`insert into kysely_migration values ('9999-future', '2030-01-01')`.execute(db);
  await close();
  await assert.rejects(openDatabase(url, new Changes()), {
    name: "UnusableDatabaseError",
    message: /written by a newer version of the service, which has the migration "9999-future"$/,
  });
});
