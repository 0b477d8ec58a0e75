import path from "node:path";
import { ServiceError } from "../contract/errors.ts";
import { quoteName } from "../contract/text/quote-name.ts";
import { isDeepStrictEqual } from "node:util";
import type { CandidateRunner } from "./candidate.ts";
import type { ModelLayout, Placement } from "./onnx/layout-model.ts";
import type { OnnxModel, Payload } from "./onnx/onnx-model.ts";
import { type FetchRanges, payloadField, payloadIndex, rangesInModel } from "./onnx/payload.ts";
import { type Destination, writeLayout, type WrittenFile } from "./onnx/write-model.ts";
import type { CompressionPlan, PlanOptions } from "./plan-compression.ts";
import { outputPayloads } from "./quantize/tasks/output-writer.ts";
import { adoptCompletedTasks, type CompletedTasks } from "./quantize/tasks/partition.ts";
import type { TaskJournal } from "./quantize/tasks/task-journal.ts";
import type { RemoteFiles } from "./checkpoints/remote-files.ts";
import { checkpointTypeBytes } from "./checkpoints/checkpoint-values.ts";
import { at } from "./onnx/at.ts";
import { runTasks } from "./quantize/tasks/run-tasks.ts";
import type { CopyTask, ModelTask, TaskResult, WeightTask } from "./quantize/tasks/weight-task.ts";

export interface CompressOptions extends PlanOptions {
  /** Folder of the result's files, which appear when they are complete. */
  readonly outputDirectory: string;
  /** The plan for these options, where it is made already; it serves once. */
  readonly plan?: CompressionPlan | undefined;
  /** SHA-256 of the ONNX file, where it is known; shares are checked faster then. */
  readonly modelSha256?: string | undefined;
  /** Called before parts of the ONNX file are read that need not be on this machine yet. */
  readonly fetchRanges?: FetchRanges | undefined;
  /** Where the files of a checkpoint are elsewhere. */
  readonly remote?: RemoteFiles | undefined;
  /**
   * Folder of this model only, where weights that are finished outlive the process: another one with
   * the same options goes on with the rest. Its files may be linked to those of the result.
   */
  readonly keptDirectory?: string | undefined;
  readonly signal: AbortSignal;
  /** Called with the fraction of the work that is done, from 0 to 1. */
  readonly onProgress: (fraction: number, message: string) => void;
  readonly log: (line: string) => void;
  /**
   * Positions of the weights that an earlier run of the same work restored at load, by times and
   * losses: the same are again, and nothing is measured.
   */
  readonly restoredAtLoad?: readonly number[] | undefined;
  /** Those that it stored in half precision, by losses. */
  readonly halved?: readonly number[] | undefined;
  /** Whether it corrected biases, by losses. */
  readonly correctsBiases?: boolean | undefined;
  /** The caller's `.npz` file for the recipe's calibration. */
  readonly calibrationPath?: string | undefined;
  /** The caller's `.npz` file for the evaluation, which a search for a recipe runs candidates on. */
  readonly dataPath?: string | undefined;
  /** Without it nothing is run, and weights keep the format that the recipe prefers. */
  readonly candidates?: CandidateRunner | undefined;
}

interface ExecuteOptions extends CompressOptions {
  /** Of the output directory, where it has work that was finished before. */
  readonly journal?: TaskJournal | undefined;
}

/** Computes and writes what a plan asks for; what shares have is taken from them. */
export async function executePlan(
  { model, tasks: weightTasks, layout }: CompressionPlan,
  shares: CompletedTasks,
  { outputDirectory: directory, modelSha256, signal, ...report }: ExecuteOptions,
): Promise<{ files: WrittenFile[]; results: WeightResult[] }> {
  const { fetchRanges, remote, journal, onProgress, log } = report;
  const planned = [...weightTasks, ...takeCopies({ model, layout })];
  const adopting = { completed: shares, modelSha256, signal };
  const completed = await adoptCompletedTasks(model, planned, adopting);
  const finished = journal?.finished ?? new Map<number, TaskResult>();
  for (const [index, task] of planned.entries()) {
    checkCopy(model, task, completed[index] ?? finished.get(index));
  }
  const adopted = completed.filter((result) => result !== undefined);
  if (adopted.some(({ rejection }) => rejection !== undefined)) {
    return { files: [], results: adopted.filter(isWeightResult) };
  }
  const waiting = planned.flatMap((task, index) => {
    return completed[index] === undefined && !finished.has(index) ? [{ task, index }] : [];
  });
  const tasks = waiting.map(({ task }) => task);
  if (shares.size > 0) {
    log(`${planned.length - tasks.length} of ${planned.length} weights come from shares`);
  }
  if (finished.size > 0) {
    log(`${finished.size} of ${planned.length} weights were finished by an earlier attempt`);
  }
  const copied = copiedPayloads(model, layout);
  await fetchRanges?.(rangesInModel(model, [...copied, ...tasks.map(({ source }) => source)]));
  const copiedBytes = copied.reduce((sum, { length }) => sum + length, 0);
  const total = tasks.reduce((sum, task) => sum + task.sourceBytes, copiedBytes);
  const onBytes = createByteProgress(total, "Compressing weights", onProgress);
  let results: TaskResult[] = [];
  const writeComputedPayloads = async (destinations: FindDestinations) => {
    const onResult = (position: number, result: TaskResult) =>
      journal?.add(at(waiting, position).index, result);
    const placed = placeTasks(tasks, destinations);
    results = await runTasks(placed, { remote, signal, onBytes, onResult });
    for (const [index, task] of tasks.entries()) checkCopy(model, task, results[index]);
  };
  const isResumed = journal !== undefined;
  const options = { directory, layout, signal, onBytes, writeComputedPayloads, isResumed };
  const files = await writeLayout(model, options);
  const all = [...adopted, ...finished.values(), ...results];
  return { files, results: all.filter(isWeightResult) };
}

export type WeightResult = TaskResult & { readonly weight: number };

function isWeightResult(result: TaskResult): result is WeightResult {
  return result.weight !== undefined;
}

/** Makes tasks of the tensors of a checkpoint that do not change: threads and shares do them too. */
export function takeCopies({
  model: { payloads },
  layout,
}: Pick<CompressionPlan, "model" | "layout">): CopyTask[] {
  return [...layout.placements.keys()].flatMap((values): CopyTask[] => {
    const source = payloads[values];
    if (source?.kind !== "checkpoint") return [];
    const { type, length: resultBytes } = source;
    payloads[values] = { kind: "computed", length: resultBytes };
    const elements = resultBytes / checkpointTypeBytes[type];
    const sizes = { elements, sourceBytes: elements * 4, resultBytes };
    const kind = type === "float32" ? "copy" : "half";
    return [{ kind, source, sourceType: "float32", ...sizes, outputs: { values } }];
  });
}

/** @throws ServiceError model_unsupported where the task is a copy that the graph's type has not */
function checkCopy({ proto }: OnnxModel, { outputs }: ModelTask, result?: TaskResult): void {
  if (result?.rejection === undefined || result.weight !== undefined) return;
  const tensors = proto.graph?.initializer ?? [];
  const copied = tensors.find((tensor) => payloadIndex(tensor) === Object.values(outputs)[0]);
  const message = `Tensor ${quoteName(copied?.name ?? "")} ${result.rejection}`;
  throw new ServiceError("model_unsupported", `${message}, in which GPUs run a language model`);
}

/** The payloads that do not change, or that are written already. */
function copiedPayloads({ payloads }: OnnxModel, { placements }: ModelLayout): Payload[] {
  return [...placements.keys()].flatMap((index) => {
    const payload = payloads[index];
    return payload === undefined || payload.kind === "computed" ? [] : [payload];
  });
}

type FindDestinations = (payload: number) => readonly Destination[];

export function placeTasks(tasks: readonly ModelTask[], destinations: FindDestinations) {
  return tasks.map((task) => {
    const payloads = outputPayloads(task);
    return {
      task,
      destinations: new Map(payloads.map((payload) => [payload, destinations(payload)])),
    };
  });
}

/** The files of a plan that was carried out. */
export interface WrittenPlan {
  readonly plan: CompressionPlan;
  readonly directory: string;
}

/**
 * Makes a plan take what another plan of the same model and recipe has written.
 * @returns the tasks whose results are not there
 */
export function reusePayloads(
  plan: CompressionPlan,
  { plan: earlier, directory }: WrittenPlan,
): WeightTask[] {
  const locate = (payload: number): Payload | undefined =>
    locatePayload(earlier, payload, directory);
  for (const payload of plan.layout.placements.keys()) {
    const known = plan.model.payloads[payload];
    const isCopied = known !== undefined && known.kind !== "computed";
    const written = isCopied ? locate(payload) : undefined;
    if (written !== undefined) plan.model.payloads[payload] = written;
  }
  return reuseResults(plan, { plan: earlier, directory });
}

/**
 * Makes a plan take the weights that another plan of the same model has computed as it would.
 * @returns the tasks whose results are not there
 */
export function reuseResults(
  plan: CompressionPlan,
  { plan: earlier, directory }: WrittenPlan,
): WeightTask[] {
  const earlierTasks = new Map(earlier.tasks.map((task) => [task.weight, task]));
  return plan.tasks.filter((task) => {
    const same = earlierTasks.get(task.weight);
    if (same === undefined || !isSameWork(task, same)) return true;
    const outputs = outputPayloads(same).map((payload) =>
      locatePayload(earlier, payload, directory),
    );
    if (outputs.includes(undefined)) return true;
    for (const [index, payload] of outputPayloads(task).entries()) {
      const output = outputs[index];
      if (output !== undefined) plan.model.payloads[payload] = output;
    }
    return false;
  });
}

/** Whether two tasks for one weight compute the same: its format can depend on other weights. */
function isSameWork(task: WeightTask, other: WeightTask): boolean {
  const [a, b] = [task, other].map((each) => ({ ...each, source: null, outputs: null }));
  return isDeepStrictEqual(a, b);
}

function locatePayload(
  { model, layout }: CompressionPlan,
  payload: number,
  directory: string,
): Payload | undefined {
  const known = model.payloads[payload];
  const [place]: readonly Placement[] = layout.placements.get(payload) ?? [];
  if (known === undefined || place === undefined) return undefined;
  const field = known.kind === "file" ? known.field : payloadField.raw;
  const file = path.join(directory, place.file);
  return { kind: "file", path: file, offset: place.offset, length: known.length, field };
}

/** Turns bytes that are done into the fraction of all. */
export function createByteProgress(
  total: number,
  message: string,
  onProgress: (fraction: number, message: string) => void,
) {
  let done = 0;
  return (bytes: number): void => {
    done += bytes;
    onProgress(total === 0 ? 1 : done / total, message);
  };
}
