import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import path from "node:path";
import { type Assignment, keptFolder } from "../contract/worker-protocol/messages.ts";
import { compressModel, predictCompression } from "../engine/compress-model.ts";
import type { CompressionReport } from "../engine/compression-report.ts";
import { planCompression } from "../engine/plan-compression.ts";
import { createJobCandidates, explainMissingData, planModel, planOptions } from "./plan-model.ts";
import { fetchInputs, type JobInputs } from "./fetch-inputs.ts";
import { finishJob } from "./finish-job.ts";
import type { JobDependencies, JobContext } from "./job-context.ts";
import { assembleModel, optimizePart, shardModel } from "./worker-steps.ts";
import { reportForecast } from "./report-forecast.ts";
import { createStageClock, type Stage } from "./reporter.ts";
import { watchUsage } from "./watch-usage.ts";

/** Does the work of a job, or the worker's part of it, until its files are stored and reported. */
export async function runJob(assignment: Assignment, dependencies: JobDependencies): Promise<void> {
  const outputDirectory = path.join(dependencies.directory, "result");
  await mkdir(outputDirectory);
  const runStage = createStageClock({ assignment, ...dependencies });
  const usage = watchUsage(dependencies.workDirectory);
  const context = { ...dependencies, assignment, runStage, outputDirectory, usage };
  logAssignment(context);
  switch (assignment.part?.step) {
    case undefined:
      return runEntireJob(context);
    case "shard":
      return shardModel(context);
    case "optimize":
      return optimizePart(context);
    case "assemble":
      return assembleModel(context);
  }
}

function logAssignment({ assignment, reporter }: JobContext): void {
  const { id, attempt, kind, recipe, target, model, dryRun, part } = assignment;
  const what = `${kind}${dryRun ? " (dry run)" : ""} "${model.name}" for target "${target.name}"`;
  const share = part?.step === "optimize" ? ` ${part.index + 1} of ${recipe.parallelism}` : "";
  reporter.log(`Job ${id}, attempt ${attempt}${part ? `, ${part.step}${share}` : ""}: ${what}`);
  if (part !== null && part.step !== "shard") return;
  const { scheme, granularity, evaluation } = recipe;
  reporter.log(`Recipe: ${scheme}, granularity ${granularity}, evaluation ${evaluation.level}`);
}

async function runEntireJob(context: JobContext): Promise<void> {
  const { assignment, relay, reporter, runStage, signal } = context;
  const { kind } = assignment;
  reporter.status(kind === "compress" ? "Sharding" : "Optimizing");
  const inputs = await runStage("fetch", async (stage) => fetchInputs(assignment, context, stage));
  // Native code of the model runs from then on; that of one that is read by ranges never does.
  const isRead = inputs.model.remote === undefined;
  if (isRead) await relay?.close(signal);
  reporter.model(inputs.model.bytes, inputs.model.sha256);
  const report = await compressInputs(context, inputs);
  if (!isRead) await relay?.close(signal);
  await finishJob(context, inputs, report);
}

/** The plan of a large model takes much memory, which the evaluation needs: it ends here. */
async function compressInputs(context: JobContext, inputs: JobInputs): Promise<CompressionReport> {
  const { assignment, reporter, runStage, usage } = context;
  const { kind, dryRun, model, recipe } = assignment;
  // A search decides first what is to be planned.
  const isPlanned = recipe.auto === undefined;
  const early = isPlanned && kind === "compress" ? await planModel(context, inputs) : undefined;
  if (kind === "compress") reporter.status("Optimizing");
  return runStage("optimize", async ({ log, onProgress }) => {
    const stage: Stage = {
      log,
      onProgress: (fraction, message) => {
        usage.note();
        onProgress(fraction, message);
      },
    };
    const candidates = createJobCandidates(context, inputs, stage);
    const { calibrationPath, dataPath } = inputs;
    const options = {
      ...planOptions(assignment),
      ...context,
      ...stage,
      remote: inputs.model.remote,
      keptDirectory: await openKeptWork(context.workDirectory, inputs.model),
      calibrationPath,
      dataPath,
      candidates,
    };
    const compress = dryRun ? predictCompression : compressModel;
    return explainMissingData(model.source, async () => {
      const { path: modelPath } = inputs.model;
      const plan = early ?? (isPlanned ? await planCompression(modelPath, options) : undefined);
      if (plan !== undefined) await reportForecast(context, inputs, plan);
      return compress(modelPath, { ...options, plan });
    });
  });
}

/**
 * Finds the folder of what earlier attempts on this machine did with the same model, and removes
 * what they did with another one, or before the machine was started: its disk may lack some of it.
 * @returns undefined where it is not known when the machine was started
 */
async function openKeptWork(
  workDirectory: string,
  { sha256, external }: JobInputs["model"],
): Promise<string | undefined> {
  if (process.platform !== "linux") return undefined;
  const start = await readFile("/proc/sys/kernel/random/boot_id", "utf8");
  const content = JSON.stringify({ start, sha256, external });
  const name = createHash("sha256").update(content).digest("hex");
  const folder = path.join(workDirectory, keptFolder);
  const kept = path.join(folder, name);
  await mkdir(kept, { recursive: true });
  for (const other of await readdir(folder)) {
    if (other !== name) await rm(path.join(folder, other), { recursive: true });
  }
  return kept;
}
