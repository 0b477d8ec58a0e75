import { payloadField } from "../../onnx/payload.ts";
import type { OnnxModel } from "../../onnx/onnx-model.ts";
import { readTrailer } from "./partition-trailer.ts";
import { taskDigest, type DigestOptions } from "./task-digest.ts";
import { outputPayloads, payloadLength } from "./task-outputs.ts";
import type { TaskResult, WeightTask } from "./weight-task.ts";

/** A task that another pod completed. */
interface CompletedTask {
  readonly result: TaskResult;
  readonly path: string;
  /** Where its outputs begin, one after the other. */
  readonly offset: number;
}

/** Tasks that other pods completed, by their digests. */
export type CompletedTasks = ReadonlyMap<string, CompletedTask>;

/** Reads what the files of writePartition contain. @throws Error if a file is no partition */
export async function readPartitions(files: readonly string[]): Promise<CompletedTasks> {
  const completed = new Map<string, CompletedTask>();
  for (const file of files) {
    let offset = 0;
    for (const { task, bytes, weight, sums, rejection } of await readTrailer(file)) {
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
  tasks: readonly WeightTask[],
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
  task: WeightTask,
  { path, ...completed }: CompletedTask,
): void {
  let { offset } = completed;
  for (const payload of outputPayloads(task)) {
    const length = payloadLength(model, payload);
    model.payloads[payload] = { kind: "file", path, offset, length, field: payloadField.raw };
    offset += length;
  }
}
