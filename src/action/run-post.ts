import * as core from "@actions/core";
import { createCheckRunWriter } from "./check-run-reporter.ts";
import { connectGitHub } from "./connect-github.ts";
import { readInputs } from "./read-inputs.ts";
import {
  type Credentials,
  openServiceSession,
  resolveCredentials,
  type ServiceClient,
} from "./service-client.ts";
import type { Step, StepProcess } from "./step.ts";
import { listJobs } from "./submit-batches.ts";
import { readWorkflowRun, stepIdentity } from "./workflow-run.ts";
import { ProblemError } from "../client/problem-error.ts";
import { conclude, type Verdict } from "../report/conclude.ts";
import { renderBatchCheck } from "../report/render-batch.ts";
import { formatCount } from "../contract/text/format-count.ts";

type EndedStep = Pick<Step, "inputs" | "run" | "identity" | "dispatcher">;

/** Cancels the batches of a step that was killed, and completes a check run that it left open. */
export async function runPost({ environment, context, dispatcher }: StepProcess): Promise<void> {
  const isRunning = core.getState("submitted") !== "" && core.getState("finished") === "";
  const isReporting = core.getState("checkRun") !== "" && core.getState("reported") === "";
  if (!isRunning && !isReporting) return;
  const inputs = readInputs(environment);
  const run = readWorkflowRun(context, environment);
  const identity = stepIdentity(run, inputs, core.getState("submission"));
  const step = { inputs, run, identity, dispatcher };
  try {
    if (isRunning) await cancelStepBatches(step, resolveCredentials(inputs, environment));
  } finally {
    if (isReporting) await completeCheckRun(step);
  }
}

/** Finds the batches by their labels: the step may have been killed before it knew their ids. */
async function cancelStepBatches(
  { inputs, identity: { labels }, dispatcher }: EndedStep,
  credentials: Credentials,
): Promise<void> {
  const serviceUrl = inputs["service-url"];
  const { client } = await openServiceSession(credentials, { serviceUrl, dispatcher });
  const jobs = await listJobs(client, { labels });
  const batches = [...new Set(jobs.flatMap(({ batchId }) => batchId ?? []))];
  core.info(
    `The step ended before its jobs. Cancelling ${formatCount(batches.length, "batch", "batches")}`,
  );
  await cancelBatches(client, batches);
}

async function completeCheckRun({ inputs, run, identity, dispatcher }: EndedStep): Promise<void> {
  const checkRun = Number(core.getState("checkRun"));
  const token = inputs["github-token"];
  if (!checkRun || token === undefined) return;
  const checks = createCheckRunWriter(connectGitHub(token, run, dispatcher), run);
  const saved = core.getState("verdict");
  const abortReason = saved === "" ? ("cancelled" as const) : undefined;
  const report = { name: identity.checkName, url: run.url, rows: [], abortReason };
  const verdict = abortReason
    ? conclude(report, inputs["fail-on"])
    : (JSON.parse(saved) as Verdict);
  const output = renderBatchCheck(report, verdict);
  await checks.update(checkRun, { output, conclusion: verdict.conclusion ?? "neutral" });
}

const timeoutMs = 5_000;

/** Requests the cancellation of batches. Gives whether the service accepted it for all of them. */
export async function cancelBatches(
  client: ServiceClient,
  ids: readonly string[],
): Promise<boolean> {
  const signal = AbortSignal.timeout(timeoutMs);
  const cancelled = await Promise.all(
    ids.map(async (id) => requestCancellation(client, id, signal)),
  );
  return cancelled.every(Boolean);
}

async function requestCancellation(
  client: ServiceClient,
  id: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await client.call("cancelBatch", { params: { id } }, { signal });
    core.info(`Batch ${id} is cancelled`);
    return true;
  } catch (error) {
    if (error instanceof ProblemError && error.problem.code === "batch_finished") return true;
    core.warning(`Batch ${id} could not be cancelled: ${String(error)}`);
    return false;
  }
}
