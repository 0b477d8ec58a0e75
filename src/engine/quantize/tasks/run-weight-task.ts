import { OutputWriter } from "./output-writer.ts";
import { runAffineTask } from "./run-affine-task.ts";
import { runBlockTask } from "./run-block-task.ts";
import { runFittedTask, runRoundedTask } from "./run-fitted-task.ts";
import { runOffsetTask } from "./run-offset-task.ts";
import { releaseBuffers, SourceReader } from "./source-reader.ts";
import { defaultTileLimits, type TileLimits } from "./tile-limits.ts";
import type { CopyTask, HalfTask, PlacedTask, TaskResult } from "./weight-task.ts";
import { emptyErrorSums } from "../../evaluate/error-metrics.ts";
import { float32ToFloat16 } from "../kernels/convert-floats.ts";

/** Runs a task tile by tile. Yields the source bytes of each tile, so that callers can stop it. */
export function* runWeightTask(
  { task, destinations }: PlacedTask,
  limits = defaultTileLimits,
): Generator<number, TaskResult> {
  using output = new OutputWriter(destinations);
  switch (task.kind) {
    case "linear":
      return yield* runAffineTask(task, output, limits);
    case "blocks":
      return yield* task.moments === undefined
        ? runBlockTask(task, output, limits)
        : runFittedTask({ ...task, moments: task.moments }, output);
    case "offset-blocks":
      return yield* runOffsetTask(task, output, limits);
    case "rounded":
      return yield* runRoundedTask(task, output);
    case "half":
      return yield* runHalfTask(task, output, limits);
    case "copy":
      return yield* runCopyTask(task, output, limits);
  }
}

function* runCopyTask(
  task: CopyTask,
  output: OutputWriter,
  { values: tileValues }: TileLimits,
): Generator<number, TaskResult> {
  using reader = new SourceReader(task);
  for (let start = 0; start < task.elements; start += tileValues) {
    const columns = Math.min(tileValues, task.elements - start);
    const values = reader.read({ start, rows: 1, columns, pitch: columns });
    output.write(task.outputs.values, values, start * 4);
    yield columns * 4;
  }
  return { sums: emptyErrorSums(), rejection: undefined };
}

function* runHalfTask(
  task: HalfTask | CopyTask,
  output: OutputWriter,
  { values: tileValues }: TileLimits,
): Generator<number, TaskResult> {
  const { elements, sourceBytes, outputs } = task;
  const sums = emptyErrorSums();
  const losses = { overflowed: 0, vanished: 0, subnormal: 0 };
  const into = new Uint16Array(Math.min(tileValues, elements));
  using reader = new SourceReader(task);
  for (let start = 0; start < elements; start += tileValues) {
    const columns = Math.min(tileValues, elements - start);
    const part = into.subarray(0, columns);
    float32ToFloat16(reader.read({ start, rows: 1, columns, pitch: columns }), part, losses, sums);
    output.write(outputs.values, part, start * 2);
    yield (columns / elements) * sourceBytes;
  }
  releaseBuffers(into);
  const rejection =
    losses.overflowed > 0 ? "has values beyond the range of half precision" : undefined;
  return { weight: "weight" in task ? task.weight : undefined, sums, rejection };
}
