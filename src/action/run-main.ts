import { createHash } from "node:crypto";
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import path from "node:path";
import type { Writable } from "node:stream";
import * as core from "@actions/core";
import type { Dispatcher } from "undici";
import { type Client, createClient } from "../client/create-client.ts";
import type { Batch } from "../contract/batch.ts";
import type { Job } from "../contract/job.ts";
import { type Conclusion, conclude } from "../report/conclude.ts";
import { renderSummary } from "../report/render-summary.ts";
import type { Report } from "../report/report.ts";
import { findModels } from "./find-models.ts";
import { followBatch } from "./follow-batch.ts";
import { type Inputs, readInputs } from "./read-inputs.ts";
import { setOutputs } from "./set-outputs.ts";
import { uploadModels } from "./upload-models.ts";

export interface Surroundings {
  readonly environment: NodeJS.ProcessEnv;
  readonly output: Writable;
  /** Aborted when the runner asks the step to end. */
  readonly signal: AbortSignal;
  readonly dispatcher: Dispatcher;
}

const maxSummaryBytes = 1_048_576;

/** The step itself: submits a batch, follows it and reports what came of it. */
export async function runMain({ environment, output, signal, dispatcher }: Surroundings): Promise<Conclusion> {
  const inputs = readInputs(environment);
  core.setSecret(inputs.token);
  const workspace = environment["GITHUB_WORKSPACE"] ?? process.cwd();
  const client = createClient({ baseUrl: inputs["service-url"], token: inputs.token, dispatcher });
  const models = await findModels(inputs.models, workspace);
  await client.call("listTargets", {}, { signal });
  const references = await uploadModels(models, client, { workspace, signal });
  const batch = await submit(client, inputs, references, environment);
  const limit = AbortSignal.any([signal, AbortSignal.timeout(inputs.timeout * 60_000)]);
  try {
    const ended = await followBatch(client, batch, { output, signal: limit });
    const jobs = await jobsOf(client, ended);
    const report = { batch: ended, jobs, batchUrl: `${inputs["service-url"]}/batches/${batch.id}` };
    return await tell(report, { environment, client, inputs });
  } catch (error) {
    if (limit.aborted) await client.call("cancelBatch", { params: { id: batch.id } });
    throw error;
  }
}

async function submit(
  client: Client,
  inputs: Inputs,
  models: readonly { name?: string | undefined; source: string }[],
  environment: NodeJS.ProcessEnv,
): Promise<Batch> {
  const key = createHash("sha256")
    .update(
      ["GITHUB_REPOSITORY", "GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT", "GITHUB_JOB", "GITHUB_ACTION"]
        .map((name) => environment[name] ?? "")
        .join("\n"),
    )
    .digest("hex");
  core.saveState("idempotencyKey", key);
  const batch = await client.call("submitBatch", {
    headers: { "idempotency-key": key },
    body: {
      models: [...models],
      targets: inputs.targets,
      recipe: inputs.recipe,
      gates: inputs.gates,
      suite: inputs.suite,
      dryRun: inputs["dry-run"],
    },
  });
  core.saveState("batchId", batch.id);
  core.info(`Batch ${batch.id}: ${batch.jobs.length} jobs`);
  return batch;
}

/** The jobs of a batch, in its order. */
async function jobsOf(client: Client, batch: Batch): Promise<Job[]> {
  const byId = new Map<string, Job>();
  for (let cursor: string | undefined; ;) {
    const page = await client.call("listJobs", { query: { batch: batch.id, limit: "200", cursor } });
    for (const job of page.jobs) byId.set(job.id, job);
    if (page.nextCursor === null) break;
    cursor = page.nextCursor;
  }
  return batch.jobs.flatMap(({ id }) => byId.get(id) ?? []);
}

async function tell(
  report: Report,
  { environment, client, inputs }: { environment: NodeJS.ProcessEnv; client: Client; inputs: Inputs },
): Promise<Conclusion> {
  const conclusion = conclude(report);
  const folder = await mkdtemp(path.join(environment["RUNNER_TEMP"] ?? "/tmp", "model-optimization-"));
  const markdown = renderSummary(report, maxSummaryBytes);
  const files = { "report-json": path.join(folder, "report.json"), "report-markdown": path.join(folder, "report.md") };
  await writeFile(files["report-json"], JSON.stringify(report));
  await writeFile(files["report-markdown"], markdown);
  const artifacts = path.join(folder, "artifacts");
  if (inputs.download) await download(client, report.jobs, artifacts);
  await core.summary.addRaw(markdown, true).write();
  setOutputs({
    "batch-id": report.batch.id,
    "batch-url": report.batchUrl,
    conclusion,
    jobs: report.jobs.length,
    completed: report.batch.counts.Completed,
    failed: report.batch.counts.Failed,
    "gates-failed": report.batch.gatesFailed,
    ...files,
    artifacts: inputs.download ? artifacts : "",
  });
  return conclusion;
}

async function download(client: Client, jobs: readonly Job[], artifacts: string): Promise<void> {
  for (const job of jobs) {
    const folder = path.join(artifacts, `${job.model.name}-${job.target}`);
    if (job.artifacts.length > 0) await mkdir(folder, { recursive: true });
    for (const { name } of job.artifacts) {
      await client.downloadArtifact(job.id, name, { file: path.join(folder, name) });
    }
  }
}
