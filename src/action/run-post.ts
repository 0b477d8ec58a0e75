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
import { conclude } from "../report/conclude.ts";
import { renderBatchCheck } from "../report/render-batch.ts";

type KilledStep = Pick<Step, "inputs" | "run" | "identity" | "dispatcher">;

/** Cleans up after a step that was killed: cancels its batches and completes its check run. */
export async function runPost({ environment, context, dispatcher }: StepProcess): Promise<void> {
  const isRunning = core.getState("submitted") !== "" && core.getState("finished") === "";
  const isReporting = core.getState("checkRun") !== "" && core.getState("reported") === "";
  if (!isRunning && !isReporting) return;
  const inputs = readInputs(environment);
  const run = readWorkflowRun(context, environment);
  const credentials = resolveCredentials(inputs, run, environment);
  const step = { inputs, run, identity: stepIdentity(run, inputs), dispatcher };
  try {
    if (isRunning && credentials !== undefined) await cancelStepBatches(step, credentials);
  } finally {
    if (isReporting) await cancelCheckRun(step);
  }
}

/** Finds the batches by their labels: the step may have been killed before it knew their ids. */
async function cancelStepBatches(
  { inputs, identity: { labels }, dispatcher }: KilledStep,
  credentials: Credentials,
): Promise<void> {
  const serviceUrl = inputs["service-url"];
  const { client } = await openServiceSession(credentials, { serviceUrl, dispatcher });
  const jobs = await listJobs(client, { labels });
  const batches = [...new Set(jobs.flatMap(({ batchId }) => batchId ?? []))];
  core.info(`The step was ended before its jobs; ${batches.length} batches are cancelled`);
  await cancelBatches(client, batches);
}

async function cancelCheckRun({ inputs, run, identity, dispatcher }: KilledStep): Promise<void> {
  const checkRun = Number(core.getState("checkRun"));
  const token = inputs["github-token"];
  if (!checkRun || token === undefined) return;
  const checks = createCheckRunWriter(connectGitHub(token, run, dispatcher), run);
  const abortReason = "cancelled";
  const report = { name: identity.checkName, url: run.url, rows: [], abortReason } as const;
  const output = renderBatchCheck(report, conclude(report, inputs["fail-on"]));
  await checks.update(checkRun, { output, conclusion: "cancelled" });
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
