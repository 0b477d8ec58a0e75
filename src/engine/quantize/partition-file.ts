import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import type { OnnxModel, Payload } from "../onnx/onnx-model.ts";
import { payloadField } from "../onnx/payload.ts";
import { runTasks } from "./run-tasks.ts";
import type { RunTasksOptions } from "./run-tasks.ts";
import type { TaskResult, WeightTask } from "./weight-task.ts";

/** Largest description at the end of a share: a hundred times what a model of 10,000 weights needs, bytes. */
const maxTrailerBytes = 256 * 1024 * 1024;
/** At the very end, the length of the description. */
const lengthBytes = 8;

const errorSums = z.object({
  signal: z.number(),
  noise: z.number(),
  changed: z.number(),
  product: z.number(),
  maxAbsoluteError: z.number(),
  notFinite: z.boolean(),
});

/** What the tasks of a share found, in the order in which their outputs lie in the file. */
const trailer = z.array(
  z.object({
    task: z.string().describe("Digest of the task."),
    bytes: z.int().min(0).describe("Length of its outputs."),
    weight: z.int().min(0),
    sums: errorSums,
    rejection: z.string().optional(),
  }),
);

/** A task that was done elsewhere. */
interface CompletedTask {
  readonly result: TaskResult;
  readonly path: string;
  /** Where its outputs begin, one after the other. */
  readonly offset: number;
}

/** Tasks that were done elsewhere, by their digests. */
export type CompletedTasks = ReadonlyMap<string, CompletedTask>;

/**
 * Does tasks and writes their outputs to a file: one after the other, and behind them what the tasks found.
 * @returns the file's size
 */
export async function writePartition(
  file: string,
  { model, tasks }: { model: OnnxModel; tasks: readonly WeightTask[] },
  options: RunTasksOptions,
): Promise<number> {
  await using handle = await open(file, "wx");
  let end = 0;
  const placed = tasks.map((task) => {
    const destinations = outputPayloads(task).map((payload) => {
      const offset = end;
      end += payloadLength(model, payload);
      return [payload, [{ path: file, offset }]] as const;
    });
    return { task, destinations: new Map(destinations) };
  });
  await handle.truncate(end);
  const results = await runTasks(placed, options);
  const trailerEntries: z.infer<typeof trailer> = results.map(({ weight, sums, rejection }, i) => {
    const task = tasks[i];
    if (task === undefined) throw new TypeError("There are more results than tasks");
    const bytes = outputPayloads(task).reduce(
      (sum, payload) => sum + payloadLength(model, payload),
      0,
    );
    return {
      task: computeTaskDigest(model, task),
      bytes,
      weight,
      sums,
      ...(rejection !== undefined && { rejection }),
    };
  });
  const text = Buffer.from(JSON.stringify(trailerEntries));
  const length = Buffer.alloc(lengthBytes);
  length.writeBigUInt64LE(BigInt(text.length));
  for (const [bytes, at] of [
    [text, end],
    [length, end + text.length],
  ] as const) {
    for (let done = 0; done < bytes.length;) {
      done += (await handle.write(bytes, done, bytes.length - done, at + done)).bytesWritten;
    }
  }
  return end + text.length + lengthBytes;
}

/** What tasks gave that were done elsewhere. @throws Error where a file is not a share */
export async function readPartitions(files: readonly string[]): Promise<CompletedTasks> {
  const done = new Map<string, CompletedTask>();
  for (const file of files) {
    let offset = 0;
    for (const { task, bytes, weight, sums, rejection } of await readTrailer(file)) {
      done.set(task, { result: { weight, sums, rejection }, path: file, offset });
      offset += bytes;
    }
  }
  return done;
}

async function readTrailer(file: string): Promise<z.infer<typeof trailer>> {
  await using handle = await open(file, "r");
  const { size } = await handle.stat();
  const length = Buffer.alloc(lengthBytes);
  const hasLength =
    size >= lengthBytes &&
    (await handle.read(length, 0, lengthBytes, size - lengthBytes)).bytesRead;
  const bytes = Number(length.readBigUInt64LE());
  const start = size - lengthBytes - bytes;
  if (hasLength !== lengthBytes || bytes > maxTrailerBytes || start < 0)
    throw new Error(`"${file}" is not a share`);
  const text = Buffer.alloc(bytes);
  for (let done = 0; done < bytes;) {
    const { bytesRead } = await handle.read(text, done, bytes - done, start + done);
    if (bytesRead === 0) throw new Error(`"${file}" became shorter while it was read`);
    done += bytesRead;
  }
  const found = trailer.parse(JSON.parse(text.toString()));
  if (found.reduce((sum, task) => sum + task.bytes, 0) !== start)
    throw new Error(`"${file}" is not a whole share`);
  return found;
}

/**
 * Makes the model take the outputs of a task from a share, if one has them.
 * @returns what the task found
 */
export function reuseCompletedTask(
  model: OnnxModel,
  task: WeightTask,
  completedTasks: CompletedTasks,
): TaskResult | undefined {
  const done = completedTasks.get(computeTaskDigest(model, task));
  if (done === undefined || done.result.rejection !== undefined) return undefined;
  let { offset } = done;
  for (const payload of outputPayloads(task)) {
    const length = payloadLength(model, payload);
    model.payloads[payload] = {
      kind: "file",
      path: done.path,
      offset,
      length,
      field: payloadField.raw,
    };
    offset += length;
  }
  return done.result;
}

/** Indices of the payloads that a task computes. */
export function outputPayloads({ outputs }: WeightTask): number[] {
  return Object.values(outputs).filter((payload) => typeof payload === "number");
}

function payloadLength(model: OnnxModel, payload: number): number {
  const found: Payload | undefined = model.payloads[payload];
  if (found === undefined) throw new TypeError(`There is no payload ${payload}`);
  return found.length;
}

/** The same for a task wherever the model lies, and another for any other task. */
function computeTaskDigest(model: OnnxModel, task: WeightTask): string {
  const { source } = task;
  const content =
    source.kind === "file"
      ? { ...source, path: path.relative(path.dirname(model.path), source.path) }
      : { sha256: createHash("sha256").update(source.bytes).digest("hex") };
  const outputs = outputPayloads(task).map((payload) => payloadLength(model, payload));
  return createHash("sha256")
    .update(JSON.stringify({ ...task, source: content, outputs }))
    .digest("hex");
}
