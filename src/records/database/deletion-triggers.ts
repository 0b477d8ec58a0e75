/** Triggers record deletions, so that every query that deletes jobs or batches does. */
const createTable = [
  `create table deletions (
    seq bigint primary key, kind ordered_text not null, project ordered_text not null,
    repository_id ordered_text, commit_sha ordered_text, batch_id ordered_text,
    document ordered_text not null, deleted_at ordered_text not null)`,
  "create index deletions_by_project on deletions (project, seq)",
  "create index deletions_by_age on deletions (deleted_at)",
  "create index deleted_resources_by_age on deleted_resources (deleted_at)",
];

/** Fields of the deleted row, and which batch it is or belongs to. */
const tables = [
  { table: "jobs", kind: "job", batch: "old.batch_id", fields: "'batchId', old.batch_id, " },
  { table: "batches", kind: "batch", batch: "old.id", fields: "" },
] as const;

export const sqliteDeletions = [
  ...createTable,
  ...tables.map(
    ({ table, kind, batch, fields }) => `create trigger ${table}_deletion after delete on ${table}
      begin
        update change_counter set value = value + 1;
        insert into deletions
          select value, '${kind}', old.project, old.repository_id, old.commit_sha, ${batch},
            json_object('id', old.id, ${fields}
              'labels', json_extract(old.document, '$.labels')),
            strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
          from change_counter;
      end`,
  ),
];

export const postgresDeletions = [
  ...createTable,
  ...tables.flatMap(({ table, kind, batch, fields }) => [
    `create function record_${kind}_deletion() returns trigger language plpgsql as $$
      declare number bigint;
      begin
        update change_counter set value = value + 1 returning value into number;
        insert into deletions values (
          number, '${kind}', old.project, old.repository_id, old.commit_sha, ${batch},
          json_build_object('id', old.id, ${fields}
            'labels', old.document::json -> 'labels')::text,
          to_char(now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'));
        return null;
      end $$`,
    `create trigger ${table}_deletion after delete on ${table}
      for each row execute function record_${kind}_deletion()`,
  ]),
];
