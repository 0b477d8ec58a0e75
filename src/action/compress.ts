import { setTimeout as delay } from "node:timers/promises";
import * as core from "@actions/core";
import type { Client } from "../client/create-client.ts";
import { isConnectionError } from "../client/retry.ts";
import type { GithubReport, Places } from "../contract/github-report.ts";
import { isTerminal } from "../contract/status.ts";
import { type Annotation, buildAnnotations } from "../report/build-annotations.ts";
import type { EndedRow } from "../report/render-job.ts";
import type { Report, ReportRow } from "../report/report.ts";
import { cancelBatches } from "./cancel-batches.ts";
import { openServiceSession, type Credentials } from "./open-service-session.ts";
import { explainError } from "./explain-error.ts";
import { followJobs } from "./follow-jobs.ts";
import { InputError } from "./input-error.ts";
import { JobTracker } from "./job-tracker.ts";
import { listJobs } from "./list-jobs.ts";
import { UnreachableError } from "./retry-while-unreachable.ts";
import { type BatchPlan, planBatch } from "./plan-batch.ts";
import type { Step } from "./step.ts";
import { resolveRevision } from "./resolve-revision.ts";
import { type Submission, submitBatches } from "./submit-batches.ts";
import { uploadModels } from "./upload-models.ts";
import { setOutputs } from "./write-results.ts";

/** What came of the step's batch. */
export interface CompressionResult {
  readonly report: Report;
  readonly annotations: readonly Annotation[];
  /** Absent where the service was not reached. */
  readonly client: Client | undefined;
}

/** What the step has got so far. */
interface Progress {
  plan?: BatchPlan;
  client?: Client;
  submission?: Submission;
  tracker?: JobTracker;
}

const cancelWaitMs = 20_000;
const cancelPollMs = 500;

/** Compresses what the inputs ask for. Whatever goes wrong is in the report; jobs that nobody waits for any more are cancelled. */
export async function compress(step: Step, credentials: Credentials): Promise<CompressionResult> {
  const limit = AbortSignal.timeout(step.inputs.timeout * 1000);
  const progress: Progress = {};
  try {
    await submitAndFollow(step, credentials, {
      progress,
      signal: AbortSignal.any([step.signal, limit]),
    });
    core.saveState("finished", "true");
    return buildResult(step, progress, {});
  } catch (error) {
    const abortReason = classifyFailure(error, { stopped: step.signal, limit });
    await stopJobs(progress, abortReason === "timed_out");
    const failureMessage =
      abortReason === "cancelled" || abortReason === "timed_out"
        ? undefined
        : explainError(error, step.inputs["service-url"]);
    const { problems } = error instanceof InputError ? error : { problems: [] };
    const misplaced = problems.flatMap(({ place, message }) =>
      place ? { place, message, level: "failure" as const, title: step.identity.checkName } : [],
    );
    const result = buildResult(step, progress, {
      abortReason,
      ...(failureMessage !== undefined && { failureMessage }),
    });
    return { ...result, annotations: [...misplaced, ...result.annotations] };
  }
}

async function submitAndFollow(
  step: Step,
  credentials: Credentials,
  { progress, signal }: { progress: Progress; signal: AbortSignal },
): Promise<void> {
  const { inputs, run, identity, output, dispatcher, github, reporter } = step;
  const plan = (progress.plan = await planBatch(inputs, {
    workspace: run.workspace,
    defaultSuite: `${run.repository}: ${identity.checkName}`.slice(0, 200),
  }));
  const baseUrl = inputs["service-url"];
  const { client, scopes } = await openServiceSession(credentials, { baseUrl, dispatcher });
  progress.client = client;
  await checkTargets(client, plan.targets, signal);
  const models = await uploadModels(plan.models, client, { workspace: run.workspace, signal });
  const revision = await resolveRevision(run, { inputs, github, scopes });
  signal.throwIfAborted();
  const report = inputs.wait ? undefined : { github: buildGithubReport(step, plan.places) };
  const request = { plan, models, identity, attempt: run.attempt, revision, report };
  const submission = (progress.submission = await submitBatches(client, request));
  const tracker = (progress.tracker = new JobTracker(submission.jobs, baseUrl));
  setOutputs({
    "batch-id": submission.batches.map(({ id }) => id).join(" "),
    "batch-url": batchUrl(step, progress),
  });
  if (!inputs.wait) return;
  await followJobs(client, submission, {
    tracker,
    output,
    signal,
    onPoll: () => reporter?.reportProgress(buildReport(step, progress)),
    onJobEnd(job, lastLines) {
      const row = tracker.rows.find(({ id }) => id === job.id);
      if (row && isEndedRow(row)) reporter?.reportJobEnd(row, lastLines, submission.jobs.length);
    },
  });
}

/** What the service needs to write the check runs that the step would write. */
function buildGithubReport({ inputs, run, identity }: Step, places: Places): GithubReport {
  return {
    repository: run.repository,
    sha: run.headSha,
    checkName: identity.checkName,
    jobChecks: inputs["job-checks"],
    failOn: inputs["fail-on"],
    serviceUrl: inputs["service-url"],
    places,
  };
}

/** @throws InputError for targets that the service does not have */
async function checkTargets(
  client: Client,
  names: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const { targets } = await client.call("listTargets", {}, { signal });
  const known = targets.map(({ name }) => name);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length === 0) return;
  const message = `The service has no target ${unknown.join(", ")}; it has ${known.join(", ")}`;
  throw new InputError([{ message }]);
}

function classifyFailure(
  error: unknown,
  { stopped, limit }: { stopped: AbortSignal; limit: AbortSignal },
) {
  if (stopped.aborted) return "cancelled";
  if (limit.aborted) return "timed_out";
  return error instanceof UnreachableError || isConnectionError(error) ? "unreachable" : "error";
}

/** Cancels what was submitted; where there is time, until no job is at work. */
async function stopJobs(
  { client, submission, tracker }: Progress,
  hasTime: boolean,
): Promise<void> {
  if (!client || !submission || !tracker) return;
  const ids = submission.batches.map(({ id }) => id);
  if (await cancelBatches(client, ids)) core.saveState("finished", "true");
  if (!hasTime) return;
  const signal = AbortSignal.timeout(cancelWaitMs);
  try {
    for (; ; await delay(cancelPollMs, undefined, { signal })) {
      const batches = await Promise.all(
        ids.map(async (id) => client.call("getBatch", { params: { id } }, { signal })),
      );
      tracker.recordBatches(batches);
      if (!batches.every(({ status }) => isTerminal(status))) continue;
      for (const batch of ids) tracker.recordJobs(await listJobs(client, { batch }, signal));
      return;
    }
  } catch (error) {
    core.info(`Not all jobs are seen to have ended: ${String(error)}`);
  }
}

function buildReport(
  step: Step,
  progress: Progress,
  end: Pick<Report, "abortReason" | "failureMessage"> = {},
): Report {
  return {
    name: step.identity.checkName,
    url: batchUrl(step, progress),
    rows: progress.tracker?.rows ?? [],
    ...end,
  };
}

function batchUrl({ inputs, run }: Step, { submission }: Progress): string {
  const [first] = submission?.batches ?? [];
  return first ? `${inputs["service-url"]}/batches/${first.id}` : run.url;
}

function buildResult(
  step: Step,
  progress: Progress,
  end: Pick<Report, "abortReason" | "failureMessage">,
): CompressionResult {
  const report = buildReport(step, progress, end);
  const annotations = progress.plan ? buildAnnotations(report.rows, progress.plan.places) : [];
  return { report, annotations, client: progress.client };
}

function isEndedRow(row: ReportRow): row is EndedRow {
  return row.job !== undefined;
}
