import { parseReportRow, type ReportRecord } from "./insert-report.ts";
import { summaryTexts } from "./read-job-texts.ts";
import { jobSummary } from "../../contract/jobs/job-summary.ts";
import { type BatchSummary, batchSummary } from "../../contract/batches/batch.ts";
import type { Suite, SuiteHistory, SuiteHistoryQuery } from "../../contract/batches/suite.ts";
import { limits } from "../../contract/limits.ts";
import type { Origin } from "../../contract/people/principal.ts";
import { runReadTransaction, type Store, type WriteTransaction } from "../database/store.ts";

interface SuiteSearch extends Partial<Origin> {
  readonly project: string;
}

/** Suites, which are there as long as they have batches. */
export function suiteRecords(store: Store) {
  return {
    list: (search: SuiteSearch): Promise<Suite[]> =>
      runReadTransaction(store, async (trx) => {
        const rows = await selectBatches(trx, search)
          .where("suite", "is not", null)
          .select(({ fn }) => [
            "suite",
            fn.countAll<number>().as("batches"),
            fn.max("id").as("newest"),
          ])
          .groupBy("suite")
          .orderBy("newest", "desc")
          .limit(limits.listedSuites)
          .execute();
        if (rows.length === 0) return [];
        const ids = rows.map(({ newest }) => newest);
        const newest = await selectBatches(trx, search)
          .where("id", "in", ids)
          .select(["id", "document"])
          .execute();
        const batches = new Map(newest.map(({ id, document }) => [id, parseBatch(document)]));
        return rows.flatMap((row) => {
          const batch = batches.get(row.newest);
          if (batch === undefined || row.suite === null) return [];
          return [{ name: row.suite, batches: Number(row.batches), newest: batch }];
        });
      }),

    readHistory: (search: SuiteSearch, { suite, model: asked, limit }: SuiteHistoryQuery) =>
      runReadTransaction(store, async (trx) => {
        const rows = await selectBatches(trx, search)
          .where("suite", "=", suite)
          .select("document")
          .orderBy("id", "desc")
          .limit(limit)
          .execute();
        const batches = rows.map(({ document }) => parseBatch(document));
        const [newest] = batches;
        if (newest === undefined) return { suite, model: null, models: [], batches: [], jobs: [] };
        const models = await listModelNames(trx, newest.id);
        const model = asked ?? models[0] ?? "";
        const ids = batches.map(({ id }) => id);
        const reports = await findReports(trx, ids);
        const described = batches.toReversed().map((batch) => {
          return { ...batch, report: reports.get(batch.id) };
        });
        return {
          suite,
          model,
          models,
          batches: described,
          jobs: await listModelJobs(trx, ids, model),
        };
      }),
  };
}

function selectBatches(db: Store["db"], { project, repository, commit }: SuiteSearch) {
  let rows = db.selectFrom("batches").where("project", "=", project);
  if (repository !== undefined) rows = rows.where("repository_id", "=", repository);
  if (commit !== undefined) rows = rows.where("commit_sha", "=", commit);
  return rows;
}

function parseBatch(document: string): BatchSummary {
  return batchSummary.parse(JSON.parse(document));
}

async function listModelNames(db: Store["db"], batch: string): Promise<string[]> {
  const rows = await db
    .selectFrom("jobs")
    .select(({ fn }) => ["model_name", fn.min("id").as("first")])
    .where("batch_id", "=", batch)
    .groupBy("model_name")
    .orderBy("first")
    .execute();
  return rows.map((row) => row.model_name);
}

async function listModelJobs(
  db: Store["db"],
  ids: readonly string[],
  model: string,
): Promise<SuiteHistory["jobs"]> {
  const rows = await db
    .selectFrom("jobs")
    .select(({ fn }) => fn.max("id").as("newest"))
    .where("batch_id", "in", ids)
    .where("model_name", "=", model)
    .groupBy(["batch_id", "target"])
    .orderBy("newest", "desc")
    .limit(limits.historyJobs)
    .execute();
  if (rows.length === 0) return [];
  const newest = rows.map((row) => row.newest);
  const found = await summaryTexts.read(db.selectFrom("jobs").where("id", "in", newest));
  const jobs = found.map(({ text }) => jobSummary.parse(JSON.parse(text)));
  return jobs.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

async function findReports(
  db: Store["db"],
  ids: readonly string[],
): Promise<ReadonlyMap<string, ReportRecord>> {
  const rows = await db.selectFrom("github_reports").selectAll().where("id", "in", ids).execute();
  return new Map(rows.map((row) => [row.id, parseReportRow(row)]));
}

/** Where something that records baselines comes from. */
export interface BatchSource {
  /** Of the workflow that asked for it. */
  readonly repository: string | null;
  /** Whether it is a resource of a cluster that no request created. */
  readonly isResource: boolean;
}

/** A suite's repository: null where no workflow recorded it first, undefined where nobody did. */
export async function findSuiteRepository(
  db: Store["db"],
  project: string,
  suite: string,
): Promise<string | null | undefined> {
  const row = await db
    .selectFrom("suites")
    .select("repository_id")
    .where("project", "=", project)
    .where("name", "=", suite)
    .executeTakeFirst();
  return row?.repository_id;
}

/** Makes a suite without baselines the repository's. Gives whose it is then. */
export async function claimSuite(
  { trx }: WriteTransaction,
  project: string,
  suite: string,
  repository: string | null,
): Promise<string | null> {
  await trx
    .insertInto("suites")
    .values({ project, name: suite, repository_id: repository })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  return (await findSuiteRepository(trx, project, suite)) ?? null;
}

/**
 * Whether a batch records baselines in a suite that was claimed. Who writes resources has no scope
 * that says for which repositories: a resource does so only where the suite belongs to none.
 */
export function recordsInSuite(
  { repository, isResource }: BatchSource,
  suiteRepository: string | null,
): boolean {
  return isResource ? suiteRepository === null : reachesSuite(repository, suiteRepository);
}

/** Whether something of a repository, or of none, reaches the suite of another. */
export function reachesSuite(
  repository: string | null,
  suiteRepository: string | null | undefined,
): boolean {
  return repository === null || suiteRepository === undefined || suiteRepository === repository;
}
