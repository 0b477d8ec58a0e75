import { z } from "zod";
import { batchFields, type BatchRequest } from "../../contract/batches/batch.ts";
import { githubReport } from "../../contract/batches/github-report.ts";
import type { Schema } from "../database/schema.ts";
import type { WriteTransaction } from "../database/store.ts";

const reportSettings = githubReport.extend({
  /** GitHub's number of the repository, as a workflow's identity says it. */
  repositoryNumber: z.int().optional(),
});
type ReportSettings = z.infer<typeof reportSettings>;

/** What is needed of a batch's request to submit its jobs again: each has its model and recipe. */
const repeatedRequest = z.object(
  batchFields.pick({
    name: true,
    suite: true,
    revision: true,
    kind: true,
    failFast: true,
    labels: true,
    parallelism: true,
    gates: true,
    dryRun: true,
  }).shape,
);
type RepeatedRequest = z.infer<typeof repeatedRequest>;

/** A report that a new batch asks for, or one in which its jobs replace others. */
export type NewReport =
  | {
      readonly settings: ReportSettings;
      readonly request: BatchRequest;
      /** Whether the results may become baselines by a button. */
      readonly isAcceptable: boolean;
    }
  | {
      /** Id of the report. */
      readonly repeats: string;
      /** Of the jobs that are replaced, in the order of the new batch's jobs. */
      readonly positions: readonly number[];
    };

/** A batch's report on GitHub. */
export interface ReportRecord {
  /** Of the batch that asked for the report. */
  readonly id: string;
  readonly project: string;
  readonly settings: ReportSettings;
  readonly request: RepeatedRequest;
  /** In the order of models × targets. */
  readonly jobIds: readonly string[];
  /** Rises when jobs are submitted again after all had ended. */
  readonly round: number;
  /** GitHub's number of the check run of this round. */
  readonly checkRun: number | null;
  /** Hash of what the check run shows in progress; null as soon as it is completed. */
  readonly contentHash: string | null;
  /** Whether the results were accepted as baselines of later jobs. */
  readonly isAccepted: boolean;
  /** Whether they may become baselines by a button. */
  readonly isAcceptable: boolean;
}

const ids = z.array(z.string());

export async function insertReport(
  { trx, effects }: WriteTransaction,
  report: Extract<NewReport, { settings: unknown }> & {
    readonly id: string;
    readonly project: string;
    readonly jobIds: readonly string[];
  },
): Promise<void> {
  const { id, project, settings, request, jobIds, isAcceptable } = report;
  await trx
    .insertInto("github_reports")
    .values({
      id,
      project,
      settings: JSON.stringify(settings),
      request: JSON.stringify(shortenRequest(request)),
      jobs: JSON.stringify(jobIds),
      round: 1,
      check_run: null,
      content_hash: null,
      is_accepted: 0,
      is_acceptable: isAcceptable ? 1 : 0,
      is_open: 1,
    })
    .execute();
  effects.changed.add(id);
}

/** A version before reads it as a whole request, with models and targets. */
function shortenRequest(request: BatchRequest): BatchRequest {
  const [models, targets] = [request.models.slice(0, 1), request.targets.slice(0, 1)];
  return { ...repeatedRequest.parse(request), models, targets };
}

/**
 * Replaces jobs of a report. Its check run goes on while it is in progress; a completed one cannot,
 * so that a new round begins with another.
 */
export async function replaceReportJobs(
  { trx, effects }: WriteTransaction,
  repetition: Extract<NewReport, { repeats: unknown }> & {
    readonly jobIds: readonly string[];
  },
): Promise<void> {
  const { repeats: id, positions, jobIds } = repetition;
  const row = await trx
    .selectFrom("github_reports")
    .selectAll()
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
  const jobs = ids
    .parse(JSON.parse(row.jobs))
    .map((former, i) => jobIds[positions.indexOf(i)] ?? former);
  const columns = { jobs: JSON.stringify(jobs), is_accepted: 0, is_open: 1 };
  const newRound = { round: row.round + 1, check_run: null, content_hash: null };
  const isInProgress = row.check_run === null || row.content_hash !== null;
  await trx
    .updateTable("github_reports")
    .set(isInProgress ? columns : { ...columns, ...newRound })
    .where("id", "=", id)
    .execute();
  effects.changed.add(id);
}

export function parseReportRow(row: Schema["github_reports"]): ReportRecord {
  return {
    id: row.id,
    project: row.project,
    settings: reportSettings.parse(JSON.parse(row.settings)),
    request: repeatedRequest.parse(JSON.parse(row.request)),
    jobIds: ids.parse(JSON.parse(row.jobs)),
    round: row.round,
    checkRun: row.check_run,
    contentHash: row.content_hash,
    isAccepted: row.is_accepted === 1,
    isAcceptable: row.is_acceptable === 1,
  };
}
