import { emptyErrorSums } from "../../evaluate/error-sums.ts";
import { float32ToFloat16 } from "../kernels/convert-floats.ts";
import type { OutputWriter } from "./output-writer.ts";
import { readTiles, tileValues } from "./read-tiles.ts";
import { releaseBuffers } from "./release-buffers.ts";
import type { HalfTask, TaskResult } from "./weight-task.ts";

export function* runHalfTask(task: HalfTask, output: OutputWriter): Generator<number, TaskResult> {
  const { weight, elements, sourceBytes, outputs } = task;
  const sums = emptyErrorSums();
  const losses = { overflowed: 0, vanished: 0, subnormal: 0 };
  const into = new Uint16Array(Math.min(tileValues, elements));
  for (const { values, start } of readTiles(task)) {
    const part = into.subarray(0, values.length);
    float32ToFloat16(values, part, losses, sums);
    output.write(outputs.values, part, start * 2);
    yield (values.length / elements) * sourceBytes;
  }
  releaseBuffers(into);
  const rejection =
    losses.overflowed > 0 ? "has values beyond the range of half precision" : undefined;
  return { weight, sums, rejection };
}
