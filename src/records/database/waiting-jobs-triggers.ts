/** Triggers count, so that every query that adds, changes or deletes jobs does. */
const createTable =
  "create table waiting_jobs (project ordered_text primary key, jobs bigint not null)";

/** Comes last: nobody changes jobs in PostgreSQL while a transaction has added triggers to them. */
const countPresent = `insert into waiting_jobs
  select project, count(*) from jobs where status = 'Pending' group by project`;

function addJobs(rows: string): string {
  return `insert into waiting_jobs ${rows}
    on conflict (project) do update set jobs = waiting_jobs.jobs + excluded.jobs`;
}

/** What ends the waiting of a job; none begins to wait again. */
const ends = [
  ["end", "update of status", "old.status = 'Pending' and new.status <> 'Pending'"],
  ["delete", "delete", "old.status = 'Pending'"],
] as const;

export const sqliteWaitingJobs = [
  createTable,
  `create trigger waiting_jobs_insert after insert on jobs when new.status = 'Pending'
    begin ${addJobs("values (new.project, 1)")}; end`,
  ...ends.map(
    ([name, change, condition]) => `create trigger waiting_jobs_${name}
      after ${change} on jobs when ${condition}
      begin ${addJobs("values (old.project, -1)")}; end`,
  ),
  countPresent,
];

const newJobs = "select project, count(*) from added where status = 'Pending' group by project";

export const postgresWaitingJobs = [
  createTable,
  `create function count_new_waiting_jobs() returns trigger language plpgsql as $$
    begin ${addJobs(newJobs)}; return null; end $$`,
  // A statement that inserts many jobs changes the counter once.
  `create trigger waiting_jobs_insert after insert on jobs referencing new table as added
    for each statement execute function count_new_waiting_jobs()`,
  `create function count_ended_waiting() returns trigger language plpgsql as $$
    begin ${addJobs("values (old.project, -1)")}; return null; end $$`,
  ...ends.map(
    ([name, change, condition]) => `create trigger waiting_jobs_${name}
      after ${change} on jobs for each row when (${condition})
      execute function count_ended_waiting()`,
  ),
  countPresent,
];
