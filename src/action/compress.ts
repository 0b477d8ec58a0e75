import * as core from "@actions/core";
import type { ServiceClient } from "./service-client.ts";
import { type Annotation, buildAnnotations } from "../report/build-annotations.ts";
import { isEndedRow } from "../report/ended-row.ts";
import type { Report } from "../report/report.ts";
import { buildGithubReport } from "./build-github-report.ts";
import { cancelSubmission } from "./cancel-submission.ts";
import { checkTargets } from "./check-targets.ts";
import { describeAbort } from "./describe-abort.ts";
import { followJobs } from "./follow-jobs.ts";
import { JobTracker } from "./job-tracker.ts";
import { openServiceSession } from "./open-service-session.ts";
import { planBatch } from "./plan-batch.ts";
import type { Credentials } from "./resolve-credentials.ts";
import { resolveRevision } from "./resolve-revision.ts";
import { setOutputs } from "./set-outputs.ts";
import type { Step } from "./step.ts";
import { type Submission, submitBatches } from "./submit-batches.ts";
import type { SubmittedWork } from "./submitted-work.ts";
import { uploadModels } from "./upload-models.ts";

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
export async function compress(step: Step, credentials: Credentials): Promise<CompressionResult> {
  const limit = AbortSignal.timeout(step.inputs.timeout * 1000);
  const signal = AbortSignal.any([step.signal, limit]);
  let work: SubmittedWork | undefined;
  try {
    work = await submit(step, credentials, signal);
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
  signal: AbortSignal,
): Promise<SubmittedWork> {
  const { inputs, run, identity, dispatcher, github } = step;
  const { workspace, attempt } = run;
  const baseUrl = inputs["service-url"];
  const defaultSuite = `${run.repository}: ${identity.checkName}`.slice(0, 200);
  const plan = await planBatch(inputs, { workspace, defaultSuite });
  const { client, scopes } = await openServiceSession(credentials, { baseUrl, dispatcher });
  await checkTargets(client, plan.targets, signal);
  const models = await uploadModels(plan.models, client, { workspace, signal });
  const revision = await resolveRevision(run, { inputs, github, scopes });
  signal.throwIfAborted();
  const report = inputs.wait ? undefined : { github: buildGithubReport(step, plan.places) };
  const request = { plan, models, identity, attempt, revision, report };
  const submission = await submitBatches(client, request);
  setOutputs({
    "batch-id": submission.batches.map(({ id }) => id).join(" "),
    "batch-url": batchUrl(step, submission),
  });
  const tracker = new JobTracker(submission.jobs, baseUrl);
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
  return first ? `${inputs["service-url"]}/batches/${first.id}` : run.url;
}
