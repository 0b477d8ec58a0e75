import * as core from "@actions/core";
import { conclude } from "../report/conclude.ts";
import { renderBatchCheck } from "../report/render-batch.ts";
import { cancelBatches } from "./cancel-batches.ts";
import { connectGitHub } from "./connect-github.ts";
import { createCheckRunWriter } from "./create-check-run-writer.ts";
import { listJobs } from "./list-jobs.ts";
import { openServiceSession } from "./open-service-session.ts";
import { readInputs } from "./read-inputs.ts";
import { type Credentials, resolveCredentials } from "./resolve-credentials.ts";
import type { Step, StepProcess } from "./step.ts";
import { stepIdentity } from "./step-identity.ts";
import { readWorkflowRun } from "./workflow-run.ts";

type KilledStep = Pick<Step, "inputs" | "run" | "identity" | "dispatcher">;

/** Cleans up after a step that was killed: cancels its batches and completes its check run. */
export async function runPost({ environment, context, dispatcher }: StepProcess): Promise<void> {
  if (core.getState("submitted") === "" || core.getState("finished") !== "") return;
  const inputs = readInputs(environment);
  const run = readWorkflowRun(context, environment);
  const credentials = resolveCredentials(inputs, run, environment);
  if (credentials === undefined) return;
  const step = { inputs, run, identity: stepIdentity(run, inputs), dispatcher };
  await cancelStepBatches(step, credentials);
  await cancelCheckRun(step);
}

/** Finds the batches by their labels: the step may have been killed before it knew their ids. */
async function cancelStepBatches(
  { inputs, identity: { labels }, dispatcher }: KilledStep,
  credentials: Credentials,
): Promise<void> {
  const baseUrl = inputs["service-url"];
  const { client } = await openServiceSession(credentials, { baseUrl, dispatcher });
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
