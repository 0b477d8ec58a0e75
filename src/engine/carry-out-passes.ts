import { randomUUID } from "node:crypto";
import { mkdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import { lacksDotProducts } from "../contract/target.ts";
import { chooseFolded, type CandidateRunner } from "./choose-folded.ts";
import { buildCompressionReport, type CompressionReport } from "./compression-report.ts";
import { logPlan } from "./log-plan.ts";
import type { ModelLayout } from "./onnx/model-layout.ts";
import type { OnnxModel } from "./onnx/onnx-model.ts";
import { type Destination, type WrittenFile, writeLayout } from "./onnx/write-model.ts";
import {
  firstPlan,
  planCompression,
  type CompressionPlan,
  type PlanOptions,
  type PlanRevision,
} from "./plan-compression.ts";
import { adoptCompletedTasks, type CompletedTasks } from "./quantize/tasks/completed-tasks.ts";
import { runTasks } from "./quantize/tasks/run-tasks.ts";
import { outputPayloads } from "./quantize/tasks/task-outputs.ts";
import type { TaskResult, WeightTask } from "./quantize/tasks/weight-task.ts";
import { reusePayloads, type WrittenPlan } from "./reuse-payloads.ts";

export interface CompressOptions extends PlanOptions {
  /** Folder of the result's files, which appear when they are complete. */
  readonly outputDirectory: string;
  /** SHA-256 of the ONNX file, where it is known; shares are checked faster then. */
  readonly modelSha256?: string | undefined;
  readonly signal: AbortSignal;
  /** Called with the fraction of the work that is done, from 0 to 1. */
  readonly onProgress: (fraction: number, message: string) => void;
  readonly log: (line: string) => void;
  /** Without it nothing is run, and weights keep the format that the recipe prefers. */
  readonly candidates?: CandidateRunner | undefined;
}

interface Pass extends WrittenPlan {
  readonly files: readonly WrittenFile[];
  /** By the position of the weight. */
  readonly results: ReadonlyMap<number, TaskResult>;
}

/**
 * Plans and writes a model, and once more from what is written where weights turned out to fit no
 * format or operators to be slower: nothing is computed twice.
 */
export async function carryOutPasses(
  shares: CompletedTasks,
  modelPath: string,
  options: CompressOptions,
): Promise<CompressionReport> {
  const scratch = path.join(options.outputDirectory, `.passes-${randomUUID()}`);
  const onProgress = createRisingProgress(options.onProgress);
  try {
    const work = { shares, modelPath, scratch, options: { ...options, onProgress } };
    const { plan, directory, files, results } = await findFinalPass(work);
    for (const { name } of files.toReversed()) {
      await rename(path.join(directory, name), path.join(options.outputDirectory, name));
    }
    return buildCompressionReport(plan, files, [...results.values()]);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Fractions of later passes start from 0; the caller sees none that is less than one before. */
function createRisingProgress(report: CompressOptions["onProgress"]) {
  let highest = 0;
  return (fraction: number, message: string) => {
    highest = Math.max(highest, fraction);
    report(highest, message);
  };
}

interface PassWork {
  readonly shares: CompletedTasks;
  readonly modelPath: string;
  /** Folder of all passes. */
  readonly scratch: string;
  readonly options: CompressOptions;
}

async function findFinalPass(work: PassWork): Promise<Pass> {
  const rejected = new Map<number, string>();
  let pass = await runPass(work, { ...firstPlan, rejected }, undefined);
  for (let found = listRejections(pass); found.length > 0; found = listRejections(pass)) {
    for (const { weight, rejection = "" } of found) rejected.set(weight, rejection);
    pass = await runPass(work, { ...firstPlan, rejected }, pass);
  }
  const { candidates, target, signal, log } = work.options;
  if (work.options.recipe.dequantize === "run") return pass;
  const folded = await chooseFolded(pass, {
    ...work,
    signal,
    log,
    candidates,
    lacksDotProducts: lacksDotProducts(target),
    replan: (slow) => planCompression(work.modelPath, work.options, { rejected, folded: slow }),
  });
  return folded.size === 0 ? pass : runPass(work, { rejected, folded }, pass);
}

function listRejections({ results }: Pass): TaskResult[] {
  return [...results.values()].filter(({ rejection }) => rejection !== undefined);
}

/** Carries out a plan, with what an earlier pass has written, whose files go afterwards. */
async function runPass(
  { shares, modelPath, scratch, options }: PassWork,
  revision: PlanRevision,
  earlier: Pass | undefined,
): Promise<Pass> {
  options.signal.throwIfAborted();
  const plan = await planCompression(modelPath, options, revision);
  logPlan(plan, options.log);
  const isWritten = earlier !== undefined && earlier.files.length > 0;
  const tasks = isWritten ? reusePayloads(plan, earlier) : plan.tasks;
  const directory = path.join(scratch, randomUUID());
  await mkdir(directory, { recursive: true });
  const { files, results } = await executePlan({ ...plan, tasks }, shares, {
    ...options,
    outputDirectory: directory,
  });
  const planned = new Set(plan.tasks.map(({ weight }) => weight));
  const kept = [...(isWritten ? earlier.results : [])].filter(([weight]) => planned.has(weight));
  if (earlier !== undefined) await rm(earlier.directory, { recursive: true });
  const all = new Map([...kept, ...results.map((result) => [result.weight, result] as const)]);
  return { plan, directory, files, results: all };
}

async function executePlan(
  { model, tasks: planned, layout }: CompressionPlan,
  shares: CompletedTasks,
  { outputDirectory: directory, modelSha256, signal, onProgress, log }: CompressOptions,
): Promise<{ files: WrittenFile[]; results: TaskResult[] }> {
  const adopting = { completed: shares, modelSha256, signal };
  const completed = await adoptCompletedTasks(model, planned, adopting);
  const adopted = completed.filter((result) => result !== undefined);
  if (adopted.some(({ rejection }) => rejection !== undefined)) {
    return { files: [], results: adopted };
  }
  const tasks = planned.filter((_, index) => completed[index] === undefined);
  if (shares.size > 0) {
    log(`${planned.length - tasks.length} of ${planned.length} weights come from shares`);
  }
  const total = tasks.reduce((sum, task) => sum + task.sourceBytes, copiedBytes(model, layout));
  let done = 0;
  const onBytes = (bytes: number) => {
    done += bytes;
    onProgress(total === 0 ? 1 : done / total, "Compressing weights");
  };
  let results: TaskResult[] = [];
  const writeComputedPayloads = async (destinations: FindDestinations) => {
    results = await runTasks(placeTasks(tasks, destinations), { signal, onBytes });
  };
  const options = { directory, layout, signal, onBytes, writeComputedPayloads };
  const files = await writeLayout(model, options);
  return { files, results: [...adopted, ...results] };
}

/** Bytes of the payloads that do not change. */
function copiedBytes({ payloads }: OnnxModel, { placements }: ModelLayout): number {
  return [...placements.keys()].reduce((sum, index) => {
    const payload = payloads[index];
    return sum + (payload?.kind === "file" ? payload.length : 0);
  }, 0);
}

type FindDestinations = (payload: number) => readonly Destination[];

function placeTasks(tasks: readonly WeightTask[], destinations: FindDestinations) {
  return tasks.map((task) => {
    const payloads = outputPayloads(task);
    return {
      task,
      destinations: new Map(payloads.map((payload) => [payload, destinations(payload)])),
    };
  });
}
