import { type Expression, expressionBuilder, type SqlBool } from "kysely";
import type { JobTexts } from "./read-job-texts.ts";
import { encodeIdTime, jobId } from "../../contract/id.ts";
import { type StatusCounts, zeroCounts } from "../../contract/batches/batch.ts";
import type { JobCountsQuery, JobQuery } from "../../contract/jobs/job-lists.ts";
import { type JobStatus, jobStatus } from "../../contract/jobs/status.ts";
import { limits } from "../../contract/limits.ts";
import type { Origin } from "../../contract/people/principal.ts";
import { containsText, hasLabels, type LabelFilter, parseLabel } from "../database/dialect-sql.ts";
import { parseCursor } from "../database/rows.ts";
import type { Schema } from "../database/schema.ts";
import type { Store } from "../database/store.ts";

/**
 * One of the indexes' leading columns besides the project; every further condition filters along
 * that index.
 */
interface IndexScan {
  readonly status?: JobStatus;
  readonly model?: { readonly column: "model_name" | "model_source"; readonly value: string };
}

/** Whose jobs are asked for, and which of them. */
export interface JobSearch {
  readonly project: string;
  /** What the jobs' origin has to be. */
  readonly origin: Partial<Origin>;
  readonly query: JobCountsQuery & Partial<Pick<JobQuery, "status" | "cursor">>;
}

/** A job, and how large its text is. */
interface FoundJob {
  readonly id: string;
  readonly bytes: number;
}

/**
 * At most `count` jobs that match, newest first. `db` shows one state: between two scans a job
 * could leave the status of the second for that of the first, and be in neither.
 */
export async function findJobs(
  db: Store["db"],
  search: JobSearch,
  { texts, count }: { readonly texts: JobTexts; readonly count: number },
): Promise<FoundJob[]> {
  // A scan in id order for each alternative, merged here, is bounded by the page; SQL's IN and OR
  // would sort all matches.
  const labels = await findLabels(db, search);
  const pages: FoundJob[][] = [];
  for (const scan of planScans(search.query)) {
    const matches = selectMatches(db, search, { ...scan, labels });
    const sizes = matches.select((eb) => ["jobs.id", texts.measure(eb).as("bytes")]);
    pages.push(await sizes.limit(count).execute());
  }
  const [only = [], ...others] = pages;
  return others.length === 0 ? only : mergePages(pages).slice(0, count);
}

/** Each job once, newest first. */
function mergePages(pages: readonly (readonly FoundJob[])[]): FoundJob[] {
  const jobs = new Map(pages.flat().map((job) => [job.id, job]));
  return [...jobs.values()].toSorted((a, b) => (a.id < b.id ? 1 : -1));
}

/** How many jobs match in each status, up to `limits.countedJobs`; `db` shows one state. */
export async function countMatches(db: Store["db"], search: JobSearch): Promise<StatusCounts> {
  const counts = { ...zeroCounts };
  const byStatus = { ...search, query: { ...search.query, status: jobStatus.options } };
  const labels = await findLabels(db, search);
  for (const scan of planScans(byStatus.query)) {
    const matches = selectMatches(db, byStatus, { ...scan, labels }).limit(limits.countedJobs);
    const { jobs } = await db
      .selectFrom(matches.select("jobs.id").as("found"))
      .select(({ fn }) => fn.countAll<number>().as("jobs"))
      .executeTakeFirstOrThrow();
    const { status } = scan;
    if (status) counts[status] = Math.min(limits.countedJobs, counts[status] + Number(jobs));
  }
  return counts;
}

function findLabels(db: Store["db"], { project, query }: JobSearch) {
  return orderLabels(db, project, (query.label ?? []).map(parseLabel));
}

function planScans(query: JobSearch["query"]): IndexScan[] {
  const statuses = [...new Set(query.status ?? [])].map((status): IndexScan => ({ status }));
  const byStatus = statuses.length > 0 ? statuses : [{}];
  const { model } = query;
  if (model === undefined) return byStatus;
  const columns = ["model_name", "model_source"] as const;
  return byStatus.flatMap((scan) =>
    columns.map((column): IndexScan => ({ ...scan, model: { column, value: model } })),
  );
}

interface PlannedScan extends IndexScan {
  readonly labels: readonly LabelFilter[];
}

/** Jobs of one scan, newest first. */
function selectMatches(db: Store["db"], search: JobSearch, scan: PlannedScan) {
  const { project, query } = search;
  const [label, ...otherLabels] = scan.labels;
  const matches = buildConditions(search, { ...scan, labels: otherLabels });
  if (label === undefined) {
    return db.selectFrom("jobs").where(matches).orderBy("jobs.id", "desc");
  }
  let labelled = db
    .selectFrom("job_labels as label")
    // SQLite keeps the order of a cross join: along the label's index, in the order of the page.
    .crossJoin("jobs")
    .whereRef("jobs.id", "=", "label.job_id")
    .where("label.project", "=", project)
    .where("label.key", "=", label.key)
    .where(matches);
  if (label.value !== undefined) labelled = labelled.where("label.value", "=", label.value);
  if (query.cursor !== undefined)
    labelled = labelled.where("label.job_id", "<", parseCursor(query.cursor, jobId));
  return labelled.orderBy("label.job_id", "desc");
}

function buildConditions(
  { project, origin, query }: JobSearch,
  scan: PlannedScan,
): Expression<SqlBool> {
  const eb = expressionBuilder<Schema, "jobs">();
  const all: Expression<SqlBool>[] = [eb("jobs.project", "=", project)];
  if (origin.repository !== undefined) all.push(eb("jobs.repository_id", "=", origin.repository));
  if (origin.commit !== undefined) all.push(eb("jobs.commit_sha", "=", origin.commit));
  if (query.cursor !== undefined) all.push(eb("jobs.id", "<", parseCursor(query.cursor, jobId)));
  if (query.createdAfter !== undefined)
    all.push(eb("jobs.id", ">=", computeFirstId(Date.parse(query.createdAfter) + 1)));
  if (query.createdBefore !== undefined)
    all.push(eb("jobs.id", "<", computeFirstId(Date.parse(query.createdBefore))));
  if (query.kind !== undefined) all.push(eb("jobs.kind", "=", query.kind));
  if (query.batch !== undefined) all.push(eb("jobs.batch_id", "=", query.batch));
  if (query.target !== undefined) all.push(eb("jobs.target", "=", query.target));
  for (const text of query.search ?? []) all.push(containsText("jobs.model_name", text));
  if (scan.status !== undefined) all.push(eb("jobs.status", "=", scan.status));
  if (scan.model !== undefined) all.push(eb(`jobs.${scan.model.column}`, "=", scan.model.value));
  return eb.and([...all, hasLabels(scan.labels)]);
}

/** Ids begin with the time of their creation, so that a range of time is a range of ids. */
function computeFirstId(time: number): string {
  return `job-${encodeIdTime(new Date(Math.max(0, time)))}`;
}

/** Beyond this many jobs a label counts as frequent, and is not counted further. */
const maxCountedJobs = 1_000;

/** Orders labels by how many jobs have them: a search goes along the first one's index. */
async function orderLabels(
  db: Store["db"],
  project: string,
  labels: readonly LabelFilter[],
): Promise<readonly LabelFilter[]> {
  if (labels.length < 2) return labels;
  const counted: { label: LabelFilter; jobs: number }[] = [];
  for (const label of labels) {
    const { key, value } = label;
    let found = db
      .selectFrom("job_labels")
      .select("job_id")
      .where("project", "=", project)
      .where("key", "=", key);
    if (value !== undefined) found = found.where("value", "=", value);
    const { jobs } = await db
      .selectFrom(found.limit(maxCountedJobs).as("found"))
      .select(({ fn }) => fn.countAll<number>().as("jobs"))
      .executeTakeFirstOrThrow();
    counted.push({ label, jobs: Number(jobs) });
  }
  return counted.toSorted((one, other) => one.jobs - other.jobs).map(({ label }) => label);
}
