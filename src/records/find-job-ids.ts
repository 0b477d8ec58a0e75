import { type Expression, expressionBuilder, type SqlBool } from "kysely";
import { encodeIdTime, jobId } from "../contract/id.ts";
import type { JobQuery } from "../contract/page.ts";
import type { Origin } from "../contract/owner.ts";
import type { JobStatus } from "../contract/status.ts";
import { parseCursor } from "./build-page.ts";
import { hasLabels, type LabelFilter, parseLabel } from "./label-filter.ts";
import { orderLabels } from "./order-labels.ts";
import type { Schema } from "./schema.ts";
import type { Store } from "./store.ts";

/**
 * One of the indexes' leading columns besides the project; every further condition filters along
 * that index.
 */
interface IndexScan {
  readonly status?: JobStatus;
  readonly model?: { readonly column: "model_name" | "model_source"; readonly value: string };
}

export interface JobSearch {
  readonly project: string;
  /** What the jobs' origin has to be. */
  readonly origin: Partial<Origin>;
  readonly query: JobQuery;
  readonly count: number;
}

/** Ids of at most `count` jobs that match, newest first. */
export async function findJobIds(store: Store, search: JobSearch) {
  const { query, count } = search;
  // A scan in id order for each alternative, merged here, is bounded by the page; SQL's IN and OR
  // would sort all matches.
  const labels = await orderLabels(store, search.project, (query.label ?? []).map(parseLabel));
  const scans = planScans(query).map((scan) => readScanIds(store, search, { ...scan, labels }));
  return [...new Set((await Promise.all(scans)).flat())].toSorted().toReversed().slice(0, count);
}

function planScans(query: JobQuery): IndexScan[] {
  const statuses = [...new Set(query.status ?? [])].map((status): IndexScan => ({ status }));
  const byStatus = statuses.length > 0 ? statuses : [{}];
  const { model } = query;
  if (model === undefined) return byStatus;
  const columns = ["model_name", "model_source"] as const;
  return byStatus.flatMap((scan) =>
    columns.map((column): IndexScan => ({ ...scan, model: { column, value: model } })),
  );
}

async function readScanIds(
  store: Store,
  search: JobSearch,
  scan: IndexScan & { labels: readonly LabelFilter[] },
) {
  const { project, query, count } = search;
  const [label, ...otherLabels] = scan.labels;
  const matches = buildConditions(search, { ...scan, labels: otherLabels });
  if (label === undefined) {
    const jobs = store.db.selectFrom("jobs").select("jobs.id").where(matches);
    return rowIds(await jobs.orderBy("jobs.id", "desc").limit(count).execute());
  }
  let labelled = store.db
    .selectFrom("job_labels as label")
    // SQLite keeps the order of a cross join: along the label's index, in the order of the page.
    .crossJoin("jobs")
    .select("jobs.id")
    .whereRef("jobs.id", "=", "label.job_id")
    .where("label.project", "=", project)
    .where("label.key", "=", label.key)
    .where(matches);
  if (label.value !== undefined) labelled = labelled.where("label.value", "=", label.value);
  if (query.cursor !== undefined)
    labelled = labelled.where("label.job_id", "<", parseCursor(query.cursor, jobId));
  return rowIds(await labelled.orderBy("label.job_id", "desc").limit(count).execute());
}

function rowIds(rows: readonly { id: string }[]): string[] {
  return rows.map((row) => row.id);
}

function buildConditions(
  { project, origin, query }: JobSearch,
  scan: IndexScan & { labels: readonly LabelFilter[] },
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
  if (scan.status !== undefined) all.push(eb("jobs.status", "=", scan.status));
  if (scan.model !== undefined) all.push(eb(`jobs.${scan.model.column}`, "=", scan.model.value));
  return eb.and([...all, hasLabels(scan.labels)]);
}

/** Ids begin with the time of their creation, so that a range of time is a range of ids. */
function computeFirstId(time: number): string {
  return `job-${encodeIdTime(new Date(Math.max(0, time)))}`;
}
