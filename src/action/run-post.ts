import * as core from "@actions/core";
import { conclude } from "../report/conclude.ts";
import { renderBatchCheck } from "../report/render-batch.ts";
import { cancelBatches } from "./cancel-batches.ts";
import { createCheckRunWriter } from "./check-run-writer.ts";
import { connectGitHub } from "./connect-github.ts";
import { openServiceSession, resolveCredentials } from "./open-service-session.ts";
import { listJobs } from "./list-jobs.ts";
import { readInputs } from "./read-inputs.ts";
import type { RunnerContext } from "./step.ts";
import { stepIdentity } from "./step-identity.ts";
import { readWorkflowRun } from "./workflow-run.ts";

/** Cleans up behind a step that was killed: cancels what it submitted, and closes its check run. */
export async function runPost({ environment, dispatcher }: RunnerContext): Promise<void> {
  if (core.getState("submitted") === "" || core.getState("finished") !== "") return;
  const inputs = readInputs(environment);
  const run = await readWorkflowRun(environment);
  const identity = stepIdentity(run, inputs);
  const credentials = resolveCredentials(inputs, run, environment);
  if (credentials === undefined) return;
  const { client } = await openServiceSession(credentials, {
    baseUrl: inputs["service-url"],
    dispatcher,
  });
  // The step may have been killed before it heard of its batch.
  const label = Object.entries(identity.labels).map(([name, value]) => `${name}=${value}`);
  const jobs = await listJobs(client, { label });
  const batches = [...new Set(jobs.flatMap(({ batchId }) => batchId ?? []))];
  core.info(`The step was ended before its jobs; ${batches.length} batches are cancelled`);
  await cancelBatches(client, batches);

  const checkRun = Number(core.getState("checkRun"));
  const token = inputs["github-token"];
  if (!checkRun || token === undefined) return;
  const checks = createCheckRunWriter(connectGitHub({ token, apiUrl: run.apiUrl, dispatcher }), {
    ...run,
    detailsUrl: run.url,
  });
  const report = {
    name: identity.checkName,
    url: run.url,
    rows: [],
    abortReason: "cancelled" as const,
  };
  const verdict = conclude(report, inputs["fail-on"]);
  await checks.update(checkRun, {
    output: renderBatchCheck(report, verdict),
    conclusion: "cancelled",
  });
}
