import { open } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { at } from "../../onnx/at.ts";
import { outputLengths, outputPayloads, payloadLength } from "./output-writer.ts";
import { runTasks } from "./run-tasks.ts";
import { type DigestOptions, taskDigest } from "./task-digest.ts";
import type { ModelTask, PlacedTask, RunTasksOptions, TaskResult } from "./weight-task.ts";
import { keepFetched, type KeptRange, keptRange } from "./kept-ranges.ts";
import { readJsonTrailer, writeJsonTrailer } from "../../onnx/json-trailer.ts";
import type { OnnxModel } from "../../onnx/onnx-model.ts";
import { payloadField } from "../../onnx/payload.ts";

interface Partition {
  readonly model: OnnxModel;
  readonly tasks: readonly ModelTask[];
}

interface PartitionOptions extends RunTasksOptions, DigestOptions {
  /** Whether what is fetched for the tasks becomes part of the file. */
  readonly keepsFetched?: boolean | undefined;
}

/**
 * Runs the tasks of a partition and writes their outputs to a file: one after the other, followed
 * by what is kept of the checkpoint and a trailer with the results.
 * @returns the file's size
 */
export async function writePartition(
  file: string,
  partition: Partition,
  { keepsFetched, ...options }: PartitionOptions,
): Promise<number> {
  await using handle = await open(file, "wx");
  const { placed, bytes } = placeInPartition(file, partition);
  await handle.truncate(bytes);
  const folder = path.dirname(partition.model.path);
  const kept =
    keepsFetched && options.remote
      ? keepFetched(options.remote, folder, { file: handle, position: bytes })
      : undefined;
  // Content that is the same before the work and when it is adopted was the same in between.
  const digests: string[] = [];
  for (const task of partition.tasks) {
    digests.push(await taskDigest(partition.model, task, options));
  }
  const results = await runTasks(placed, kept ? { ...options, remote: kept.files } : options);
  const entries = results.map((result, index) => trailerEntry(partition, index, result));
  const identified = entries.map((entry, index) => ({ ...entry, task: at(digests, index) }));
  const ranges = kept?.ranges ?? [];
  const end = bytes + sumBytes(ranges);
  return await writeJsonTrailer(handle, [...identified, ...ranges] satisfies Trailer, end);
}

function placeInPartition(
  file: string,
  { model, tasks }: Partition,
): { placed: PlacedTask[]; bytes: number } {
  let bytes = 0;
  const placed = tasks.map((task) => {
    const destinations = outputPayloads(task).map((payload) => {
      const offset = bytes;
      bytes += payloadLength(model, payload);
      return [payload, [{ path: file, offset }]] as const;
    });
    return { task, destinations: new Map(destinations) };
  });
  return { placed, bytes };
}

function trailerEntry(
  { model, tasks }: Partition,
  index: number,
  { weight, sums, rejection }: TaskResult,
) {
  const task = tasks[index];
  if (task === undefined) throw new TypeError("There are more results than tasks");
  const bytes = outputLengths(model, task).reduce((sum, length) => sum + length, 0);
  return { bytes, weight, sums, rejection };
}

/**
 * Divides tasks into that many partitions whose largest is small: the largest task goes first, each
 * to the partition with the fewest bytes. The same tasks always give the same partitions; each
 * keeps their order.
 */
export function partitionTasks(tasks: readonly ModelTask[], count: number): ModelTask[][] {
  const partitions = Array.from({ length: count }, () => ({
    bytes: 0,
    tasks: new Set<ModelTask>(),
  }));
  for (const task of tasks.toSorted((a, b) => b.sourceBytes - a.sourceBytes)) {
    const least = partitions.reduce((lightest, partition) =>
      partition.bytes < lightest.bytes ? partition : lightest,
    );
    least.bytes += task.sourceBytes;
    least.tasks.add(task);
  }
  return partitions.map((partition) => tasks.filter((task) => partition.tasks.has(task)));
}

const errorSums = z.object({
  signal: z.number(),
  noise: z.number(),
  changed: z.number(),
  product: z.number(),
  maxAbsoluteError: z.number(),
  notFinite: z.boolean(),
});

/** A TaskResult in a file. */
export const taskResult = z.object({
  weight: z.int().min(0).optional(),
  sums: errorSums,
  rejection: z.string().optional(),
});

const storedResult = taskResult.extend({
  task: z.string().describe("Digest of the task."),
  bytes: z.int().min(0).describe("Length of its outputs."),
});

/** What a partition has, in the order in which it is in the file: results, then what is kept. */
const trailer = z.array(z.union([storedResult, keptRange]));
type Trailer = z.infer<typeof trailer>;

/** @throws Error if a file is not a partition, or not all of one */
async function readTrailer(file: string) {
  const { value, start } = await readJsonTrailer(file);
  const entries = trailer.parse(value);
  if (sumBytes(entries) !== start) throw new Error(`"${file}" is not a whole share`);
  return {
    results: entries.filter((entry) => "task" in entry),
    ranges: entries.filter((entry) => "file" in entry),
  };
}

function sumBytes(entries: readonly { readonly bytes: number }[]): number {
  return entries.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** A part of a file of a checkpoint, and the partition that has it. */
interface FoundRange extends KeptRange {
  readonly path: string;
  /** Where it begins in the partition. */
  readonly position: number;
}

/** What the files of writePartition have of a checkpoint. @throws Error if a file is not one */
export async function findKeptRanges(files: readonly string[]): Promise<FoundRange[]> {
  const found: FoundRange[] = [];
  for (const file of files) {
    const { results, ranges } = await readTrailer(file);
    let position = sumBytes(results);
    for (const range of ranges) {
      found.push({ ...range, path: file, position });
      position += range.bytes;
    }
  }
  return found;
}

/** A task that another pod completed. */
interface CompletedTask {
  readonly result: TaskResult;
  readonly path: string;
  /** Where its outputs begin, one after the other. */
  readonly offset: number;
}

/** Tasks that other pods completed, by their digests. */
export type CompletedTasks = ReadonlyMap<string, CompletedTask>;

/** Reads what the files of writePartition contain. @throws Error if a file is not one */
export async function readPartitions(files: readonly string[]): Promise<CompletedTasks> {
  const completed = new Map<string, CompletedTask>();
  for (const file of files) {
    let offset = 0;
    const { results } = await readTrailer(file);
    for (const { task, bytes, weight, sums, rejection } of results) {
      completed.set(task, { result: { weight, sums, rejection }, path: file, offset });
      offset += bytes;
    }
  }
  return completed;
}

/**
 * Makes the model take the outputs of tasks from partitions that computed them from the same
 * content, unless they were rejected.
 * @returns the tasks' results, in their order; undefined for one that no partition has
 */
export async function adoptCompletedTasks(
  model: OnnxModel,
  tasks: readonly ModelTask[],
  { completed, ...options }: DigestOptions & { readonly completed: CompletedTasks },
): Promise<(TaskResult | undefined)[]> {
  if (completed.size === 0) return tasks.map(() => undefined);
  const results: (TaskResult | undefined)[] = [];
  for (const task of tasks) {
    const found = completed.get(await taskDigest(model, task, options));
    if (found !== undefined && found.result.rejection === undefined) {
      takeOutputs(model, task, found);
    }
    results.push(found?.result);
  }
  return results;
}

function takeOutputs(
  model: OnnxModel,
  task: ModelTask,
  { path, ...completed }: CompletedTask,
): void {
  let { offset } = completed;
  for (const payload of outputPayloads(task)) {
    const length = payloadLength(model, payload);
    model.payloads[payload] = { kind: "file", path, offset, length, field: payloadField.raw };
    offset += length;
  }
}
