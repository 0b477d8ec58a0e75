import { setTimeout as delay } from "node:timers/promises";
import * as core from "@actions/core";
import { describeAbort, InputError } from "./explain-error.ts";
import type { NamedModel } from "./find-models.ts";
import { followJobs } from "./follow-jobs.ts";
import { JobTracker } from "./job-tracker.ts";
import { type BatchFile, planBatch } from "./plan-batch.ts";
import { logLine } from "./print-output.ts";
import { resolveRevision } from "./resolve-revision.ts";
import { cancelBatches } from "./run-post.ts";
import { type Credentials, openServiceSession, type ServiceClient } from "./service-client.ts";
import type { Step } from "./step.ts";
import { getBatches, listJobs, type Submission, submitBatches } from "./submit-batches.ts";
import { uploadFile, type UploadOptions } from "./upload-artifact.ts";
import type { ActionOutputName } from "../contract/batches/action.ts";
import type { GithubReport, Places } from "../contract/batches/github-report.ts";
import { isTerminal } from "../contract/jobs/status.ts";
import type { ModelReference } from "../contract/models/model.ts";
import { batchAddress } from "../contract/page-addresses.ts";
import { type Annotation, buildAnnotations } from "../report/build-annotations.ts";
import { isEndedRow, type Report } from "../report/report.ts";

export interface CompressionResult {
  readonly report: Report;
  readonly annotations: readonly Annotation[];
  /** Undefined where nothing was submitted. */
  readonly client: ServiceClient | undefined;
}

/**
 * Compresses the models of the inputs. A failure is part of the report; jobs that nothing waits for
 * are cancelled then.
 */
export async function compress(
  step: Step,
  credentials: Credentials,
  batchFile: Promise<BatchFile>,
): Promise<CompressionResult> {
  const limit = AbortSignal.timeout(step.inputs.timeout * 1000);
  const signal = AbortSignal.any([step.signal, limit]);
  let work: SubmittedWork | undefined;
  try {
    work = await submit(step, credentials, { batchFile, signal });
    if (step.inputs.wait) await follow(step, work, signal);
    core.saveState("finished", "true");
    return buildResult(step, work);
  } catch (error) {
    const { annotations, ...end } = describeAbort(error, step, limit);
    if (work) await cancelSubmission(work, { waits: end.abortReason === "timed_out" });
    const result = buildResult(step, work, end);
    return { ...result, annotations: [...annotations, ...result.annotations] };
  }
}

/** Plans the batch, uploads its models and submits it. */
async function submit(
  step: Step,
  credentials: Credentials,
  { batchFile, signal }: { batchFile: Promise<BatchFile>; signal: AbortSignal },
): Promise<SubmittedWork> {
  const { inputs, run, identity, dispatcher, github } = step;
  const { workspace, attempt } = run;
  const serviceUrl = inputs["service-url"];
  const plan = await planBatch(inputs, { workspace, defaultSuite: identity.suite, batchFile });
  const { client, scopes } = await openServiceSession(credentials, { serviceUrl, dispatcher });
  await checkTargets(client, plan.targets, signal);
  const models = await uploadModels(plan.models, client, { workspace, signal });
  const revision = await resolveRevision(run, { inputs, github, scopes });
  signal.throwIfAborted();
  const report = inputs.wait ? undefined : { github: buildGithubReport(step, plan.places) };
  const request = { plan, models, identity, attempt, revision, report, signal };
  const submission = await submitBatches(client, request);
  setOutputs({
    "batch-id": submission.batches.map(({ id }) => id).join(" "),
    "batch-url": batchUrl(step, submission),
  });
  const tracker = new JobTracker(submission.jobs, serviceUrl);
  return { client, submission, tracker, places: plan.places };
}

async function follow(step: Step, work: SubmittedWork, signal: AbortSignal): Promise<void> {
  const { output, reporter } = step;
  const { client, submission, tracker } = work;
  await followJobs(client, submission, {
    tracker,
    output,
    signal,
    onPoll: () => reporter?.reportProgress(buildReport(step, work)),
    onJobEnd(job, lastLines) {
      const row = tracker.rows.find(({ id }) => id === job.id);
      if (row && isEndedRow(row)) reporter?.reportJobEnd(row, lastLines, submission.jobs.length);
    },
  });
}

function buildResult(
  step: Step,
  work: SubmittedWork | undefined,
  end?: Pick<Report, "abortReason" | "failureMessage">,
): CompressionResult {
  const report = { ...buildReport(step, work), ...end };
  const annotations = work ? buildAnnotations(report.rows, work.places) : [];
  return { report, annotations, client: work?.client };
}

function buildReport(step: Step, work: SubmittedWork | undefined): Report {
  return {
    name: step.identity.checkName,
    url: batchUrl(step, work?.submission),
    rows: work?.tracker.rows ?? [],
  };
}

function batchUrl({ inputs, run }: Step, submission: Submission | undefined): string {
  const [first] = submission?.batches ?? [];
  return first ? `${inputs["service-url"]}${batchAddress(first.id)}` : run.url;
}

/** The step's batches at the service. */
interface SubmittedWork {
  readonly client: ServiceClient;
  readonly submission: Submission;
  readonly tracker: JobTracker;
  readonly places: Places;
}

const waitLimitMs = 20_000;
const pollMs = 500;

/** Cancels what was submitted and, where asked to, waits a while until no worker runs. */
async function cancelSubmission(
  work: SubmittedWork,
  { waits }: { readonly waits: boolean },
): Promise<void> {
  const ids = work.submission.batches.map(({ id }) => id);
  if (await cancelBatches(work.client, ids)) core.saveState("finished", "true");
  if (!waits) return;
  try {
    await recordEnds(work, ids, AbortSignal.timeout(waitLimitMs));
  } catch (error) {
    logLine(`Not all jobs are seen to have ended: ${String(error)}`);
  }
}

async function recordEnds(
  { client, tracker }: SubmittedWork,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const batches = await getBatches(client, ids, signal);
    tracker.recordBatches(batches);
    if (batches.every(({ status }) => isTerminal(status))) break;
    await delay(pollMs, undefined, { signal });
  }
  for (const batch of ids) tracker.recordJobs(await listJobs(client, { batch }, signal));
}

/**
 * Uploads the files that the service lacks, and gives all models as a batch references them.
 * @throws InputError for a model that is larger than the service allows
 */
async function uploadModels(
  models: readonly NamedModel[],
  client: ServiceClient,
  options: UploadOptions,
): Promise<ModelReference[]> {
  const references: ModelReference[] = [];
  for (const model of models) {
    const source = "source" in model ? model.source : await uploadFile(client, model, options);
    references.push({ name: model.name, source, sha256: model.sha256 });
  }
  return references;
}

/** @throws InputError for targets that the service does not have */
async function checkTargets(
  client: ServiceClient,
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

/** Sets outputs of the step. */
export function setOutputs(
  outputs: Readonly<Partial<Record<ActionOutputName, string | number>>>,
): void {
  for (const [name, value] of Object.entries(outputs)) core.setOutput(name, value);
}

/** What the service needs to write the step's check runs. */
function buildGithubReport(
  { inputs, run, identity }: Pick<Step, "inputs" | "run" | "identity">,
  places: Places,
): GithubReport {
  return {
    repository: run.repository,
    sha: run.headSha,
    checkName: identity.checkName,
    jobChecks: inputs["job-checks"],
    failOn: inputs["fail-on"],
    places,
  };
}
