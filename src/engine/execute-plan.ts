import { createByteProgress } from "./byte-progress.ts";
import type { CandidateRunner } from "./candidate.ts";
import { type FetchRanges, rangesInModel } from "./onnx/file-range.ts";
import type { ModelLayout } from "./onnx/model-layout.ts";
import type { OnnxModel, Payload } from "./onnx/onnx-model.ts";
import { type Destination, type WrittenFile, writeLayout } from "./onnx/write-model.ts";
import type { CompressionPlan, PlanOptions } from "./plan-compression.ts";
import { adoptCompletedTasks, type CompletedTasks } from "./quantize/tasks/completed-tasks.ts";
import { runTasks } from "./quantize/tasks/run-tasks.ts";
import { outputPayloads } from "./quantize/tasks/task-outputs.ts";
import type { TaskResult, WeightTask } from "./quantize/tasks/weight-task.ts";

export interface CompressOptions extends PlanOptions {
  /** Folder of the result's files, which appear when they are complete. */
  readonly outputDirectory: string;
  /** The plan for these options, where it is made already; it serves once. */
  readonly plan?: CompressionPlan | undefined;
  /** SHA-256 of the ONNX file, where it is known; shares are checked faster then. */
  readonly modelSha256?: string | undefined;
  /** Called before parts of the ONNX file are read that need not be on this machine yet. */
  readonly fetchRanges?: FetchRanges | undefined;
  readonly signal: AbortSignal;
  /** Called with the fraction of the work that is done, from 0 to 1. */
  readonly onProgress: (fraction: number, message: string) => void;
  readonly log: (line: string) => void;
  /** Without it nothing is run, and weights keep the format that the recipe prefers. */
  readonly candidates?: CandidateRunner | undefined;
}

/** Computes and writes what a plan asks for; what shares have is taken from them. */
export async function executePlan(
  { model, tasks: planned, layout }: CompressionPlan,
  shares: CompletedTasks,
  { outputDirectory: directory, modelSha256, signal, ...report }: CompressOptions,
): Promise<{ files: WrittenFile[]; results: TaskResult[] }> {
  const { fetchRanges, onProgress, log } = report;
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
  const copied = copiedPayloads(model, layout);
  await fetchRanges?.(rangesInModel(model, [...copied, ...tasks.map(({ source }) => source)]));
  const copiedBytes = copied.reduce((sum, { length }) => sum + length, 0);
  const total = tasks.reduce((sum, task) => sum + task.sourceBytes, copiedBytes);
  const onBytes = createByteProgress({ total, message: "Compressing weights", onProgress });
  let results: TaskResult[] = [];
  const writeComputedPayloads = async (destinations: FindDestinations) => {
    results = await runTasks(placeTasks(tasks, destinations), { signal, onBytes });
  };
  const options = { directory, layout, signal, onBytes, writeComputedPayloads };
  const files = await writeLayout(model, options);
  return { files, results: [...adopted, ...results] };
}

/** The payloads that do not change, or that are written already. */
function copiedPayloads({ payloads }: OnnxModel, { placements }: ModelLayout): Payload[] {
  return [...placements.keys()].flatMap((index) => {
    const payload = payloads[index];
    return payload?.kind === "file" ? [payload] : [];
  });
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
