import type { Migration } from "kysely/migration";
import { laterMigrations } from "./later-migrations.ts";
import { createPostgresIndexes, createPostgresTables } from "./postgres-tables.ts";
import { runStatements } from "./store.ts";

/**
 * Applied in the order of their names. The first one makes the schema that SQLite has after the
 * migration of the same name. One that was released is never changed; each works while replicas of
 * the version before run.
 */
export const postgresMigrations: Readonly<Record<string, Migration>> = {
  "0014-outlines": { up: (db) => runStatements(db, createSchema()) },
  ...Object.fromEntries(
    Object.entries(laterMigrations).map(([name, { postgres }]): [string, Migration] => [
      name,
      { up: (db) => runStatements(db, postgres) },
    ]),
  ),
};

const insertFirstRows = [
  "insert into change_counter values (0)",
  `insert into projects
    values ('default', to_char(now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`,
];

const protectAudit = [
  `create function refuse_audit_change() returns trigger language plpgsql as $$
    begin raise exception 'The audit is never %', tg_argv[0]; end $$`,
  `create trigger audit_is_not_changed before update on audit
    for each row execute function refuse_audit_change('changed')`,
  `create trigger audit_is_not_deleted before delete or truncate on audit
    for each statement execute function refuse_audit_change('deleted')`,
];

/** Jobs and batches are numbered by their last change. */
const numberChanges = [
  `create function number_change() returns trigger language plpgsql as $$
    begin
      update change_counter set value = value + 1 returning value into new.change_seq;
      return new;
    end $$`,
  ...["jobs", "batches"].map(
    (table) => `create trigger ${table}_change before insert or update of document on ${table}
      for each row execute function number_change()`,
  ),
];

function addByteCounter(table: string, row: "new" | "old", project: string): string[] {
  const [event, sign] = row === "new" ? ["insert", ""] : ["delete", "-"];
  const name = `${table}_${event}`;
  return [
    `create function ${name}() returns trigger language plpgsql as $$
      begin
        insert into project_usage values (${project}, ${sign}${row}.bytes)
          on conflict (project) do update
          set stored_bytes = project_usage.stored_bytes + excluded.stored_bytes;
        return null;
      end $$`,
    `create trigger ${name} after ${event} on ${table}
      for each row execute function ${name}()`,
  ];
}

const jobProject = (row: string) => `(select project from jobs where id = ${row}.job_id)`;

function createSchema(): string[] {
  return [
    ...createPostgresTables,
    ...createPostgresIndexes,
    ...insertFirstRows,
    ...protectAudit,
    ...numberChanges,
    ...addByteCounter("project_blobs", "new", "new.project"),
    ...addByteCounter("project_blobs", "old", "old.project"),
    ...addByteCounter("job_blobs", "new", jobProject("new")),
    ...addByteCounter("job_blobs", "old", jobProject("old")),
  ];
}
