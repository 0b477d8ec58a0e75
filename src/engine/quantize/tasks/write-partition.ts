import { open } from "node:fs/promises";
import type { OnnxModel } from "../../onnx/onnx-model.ts";
import { writeJsonTrailer } from "../../onnx/json-trailer.ts";
import type { PartitionTrailer } from "./partition-trailer.ts";
import type { PlacedTask } from "./placed-task.ts";
import { runTasks } from "./run-tasks.ts";
import type { RunTasksOptions } from "./run-tasks-options.ts";
import { taskDigest, type DigestOptions } from "./task-digest.ts";
import { outputLengths, outputPayloads, payloadLength } from "./task-outputs.ts";
import type { TaskResult, WeightTask } from "./weight-task.ts";

interface Partition {
  readonly model: OnnxModel;
  readonly tasks: readonly WeightTask[];
}

/**
 * Runs the tasks of a partition and writes their outputs to a file: one after the other, followed
 * by a trailer with the results.
 * @returns the file's size
 */
export async function writePartition(
  file: string,
  partition: Partition,
  options: RunTasksOptions & DigestOptions,
): Promise<number> {
  await using handle = await open(file, "wx");
  const { placed, bytes } = placeInPartition(file, partition);
  await handle.truncate(bytes);
  // Content that is the same before the work and when it is adopted was the same in between.
  const digests: string[] = [];
  for (const task of partition.tasks) {
    digests.push(await taskDigest(partition.model, task, options));
  }
  const results = await runTasks(placed, options);
  const entries = results.map((result, index) => trailerEntry(partition, index, result));
  const identified = entries.map((entry, index) => ({ ...entry, task: digests[index] ?? "" }));
  return await writeJsonTrailer(handle, identified satisfies PartitionTrailer, bytes);
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
