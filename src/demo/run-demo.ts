import { mkdir } from "node:fs/promises";
import path from "node:path";
import { type Client, createClient } from "../client/create-client.ts";
import { routes } from "../contract/routes/routes.ts";
import type { Batch } from "../contract/batches/batch.ts";
import { formatBytes } from "../contract/text/format-bytes.ts";
import type { Job } from "../contract/jobs/job.ts";
import { formatCount } from "../contract/text/format-count.ts";
import { demoModels } from "./demo-models.ts";
import type { Display } from "./display.ts";
import { cancelDemoBatch, followBatch } from "./follow-batch.ts";
import { resultTable } from "./result-table.ts";
import { startServiceProcess } from "./start-service-process.ts";

const targets = ["cpu", "cpu-int8"];
const gates = { maxSizeRatio: 0.7, minCosine: 0.95 };

const explanation = [
  "Accuracy is that of the worst output on generated samples,",
  "latency the median of original and result.",
].join(" ");

/** Seconds enough for the demo's models, which are small, on a machine that does little else. */
const recipe = { evaluation: { latencyBudgetSeconds: 5 } };

interface DemoOptions {
  /** Folder of the service's data and the results. */
  readonly directory: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly display: Display;
  readonly signal: AbortSignal;
}

/**
 * Compresses real models for the built-in targets.
 * @returns whether every job is Completed
 */
export async function runDemo({
  directory,
  environment,
  display,
  signal,
}: DemoOptions): Promise<boolean> {
  display.print(`Starting the service in ${directory}`);
  const service = await startServiceProcess(directory, environment);
  try {
    display.print(`The service listens on ${service.baseUrl}`);
    const client = createClient({ ...service, routes });
    const batch = await submitDemoBatch(client, display, signal);
    const jobs = await followOrCancel(client, batch, { display, signal });
    display.close();
    const results = path.join(directory, "results", batch.id);
    for (const job of jobs) await saveDemoArtifacts(client, job, results);
    printResults(jobs, results, display);
    return jobs.every((job) => job.status === "Completed");
  } finally {
    display.close();
    await service.stop();
  }
}

async function submitDemoBatch(
  client: Client,
  display: Display,
  signal: AbortSignal,
): Promise<Batch> {
  const models: { source: string; name: string }[] = [];
  for (const { name, file } of demoModels) {
    const { source, bytes, sent } = await client.uploadModel(file, { signal });
    display.print(`${sent ? "Uploaded" : "Already uploaded"}: ${name}, ${formatBytes(bytes)}`);
    models.push({ source, name });
  }
  signal.throwIfAborted();
  // Not aborted: a batch whose id the demo does not receive could not be cancelled.
  const batch = await client.call("submitBatch", {
    body: { name: "demo", models, targets, gates, recipe },
  });
  const size = `${formatCount(models.length, "model")} for ${formatCount(targets.length, "target")}`;
  display.print(`Batch ${batch.id}: ${size}`);
  return batch;
}

async function followOrCancel(
  client: Client,
  batch: Batch,
  { display, signal }: Pick<DemoOptions, "display" | "signal">,
): Promise<Job[]> {
  try {
    signal.throwIfAborted();
    return await followBatch(client, batch, display, signal);
  } catch (error) {
    if (signal.aborted) {
      display.print("Cancelling the batch");
      await cancelDemoBatch(client, batch);
      display.print("The batch was cancelled");
    }
    throw error;
  }
}

async function saveDemoArtifacts(client: Client, job: Job, results: string): Promise<void> {
  const folder = path.join(results, folderName(job));
  if (job.artifacts.length > 0) await mkdir(folder, { recursive: true });
  for (const { name } of job.artifacts) {
    await client.downloadArtifact(job.id, name, { file: path.join(folder, name) });
  }
}

function printResults(jobs: readonly Job[], results: string, display: Display): void {
  display.print(`\n${resultTable(jobs, display.columns)}\n`);
  display.print(explanation);
  for (const { telemetry, model, target, error } of jobs) {
    const title = `${model.name} for ${target}`;
    for (const { message } of telemetry.warnings) display.print(`Warning, ${title}: ${message}`);
    if (error) display.print(`Failed, ${title}: ${error.message} (${error.code})`);
  }
  const saved = jobs.filter((job) => job.artifacts.length > 0);
  if (saved.length === 0) return;
  display.print(`\nCompressed models and reports are in ${path.relative(".", results)}${path.sep}`);
  for (const job of saved) display.print(`  ${folderName(job)}${path.sep}`);
}

function folderName({ model, target }: Job): string {
  return `${model.name}-${target}`;
}
