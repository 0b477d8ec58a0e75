import { mkdtemp, open, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runWeightTask } from "../../../../src/engine/quantize/tasks/run-weight-task.ts";
import type { TileLimits } from "../../../../src/engine/quantize/tasks/tile-limits.ts";
import { outputPayloads } from "../../../../src/engine/quantize/tasks/output-writer.ts";
import type {
  FloatType,
  TaskResult,
  WeightTask,
} from "../../../../src/engine/quantize/tasks/weight-task.ts";

/** Bounds that divide even small weights into many parts. */
export const smallLimits: TileLimits = { values: 96, mostValues: 512, resultBytes: 1024 };

export interface TaskRun {
  readonly result: TaskResult;
  /** Content of each payload, by its index. */
  readonly outputs: readonly Buffer[];
}

/** Runs a task whose outputs, of the given lengths, lie one behind the other in a file. */
export async function runTask(
  task: WeightTask,
  lengths: readonly number[],
  limits?: TileLimits,
): Promise<TaskRun> {
  const folder = await mkdtemp(join(tmpdir(), "task-"));
  try {
    const path = join(folder, "outputs");
    const offsets = lengths.map((_, index) =>
      lengths.slice(0, index).reduce((sum, length) => sum + length, 3),
    );
    const file = await open(path, "w");
    await file.truncate(lengths.reduce((sum, length) => sum + length, 3));
    await file.close();
    const destinations = new Map(
      outputPayloads(task).map((payload) => [payload, [{ path, offset: offsets[payload] ?? 0 }]]),
    );
    const steps = runWeightTask({ task, destinations }, limits);
    let step = steps.next();
    while (!step.done) step = steps.next();
    const content = await readFile(path);
    const outputs = lengths.map((length, index) => {
      const start = offsets[index] ?? 0;
      return content.subarray(start, start + length);
    });
    return { result: step.value, outputs };
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** What every task has: its weight, in memory as `type`. */
export function sourceFields(values: Float32Array, type: FloatType) {
  const content = encodeFloats(values, type);
  const bytes = new Uint8Array(content.buffer, content.byteOffset, content.byteLength);
  return {
    weight: 0,
    source: { kind: "memory", bytes },
    sourceType: type,
    elements: values.length,
    sourceBytes: bytes.length,
    resultBytes: values.length,
  } as const;
}

/** Numbers as a type has them; of bfloat16, those that are nearest to zero. */
export function encodeFloats(values: Float32Array, type: FloatType): ArrayBufferView {
  if (type === "float32") return values;
  if (type === "float16") return Float16Array.from(values);
  return Uint16Array.from(new Uint32Array(values.slice().buffer), (word) => word >>> 16);
}

/** The inverse of `encodeFloats`. */
export function decodeFloats(bytes: Uint8Array, type: FloatType): Float32Array {
  const { buffer } = new Uint8Array(bytes);
  if (type === "float32") return new Float32Array(buffer);
  if (type === "float16") return Float32Array.from(new Float16Array(buffer));
  return new Float32Array(Uint32Array.from(new Uint16Array(buffer), (half) => half << 16).buffer);
}
