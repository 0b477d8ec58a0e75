import { type MatrixPanel, matrixPanels, panelRectangles } from "./matrix-panels.ts";
import type { OutputWriter } from "./output-writer.ts";
import { releaseBuffers, SourceReader } from "./source-reader.ts";
import type { TileLimits } from "./tile-limits.ts";
import { panelTiles } from "./tiles.ts";
import type { BlockTask, FloatType, TaskResult } from "./weight-task.ts";
import { emptyErrorSums } from "../../evaluate/error-metrics.ts";
import {
  createDequantizeLinearBlocks,
  createGatherBlocks,
  createMatMulNBitsBlocks,
  type QuantizedBlocks,
} from "../kernels/block-format.ts";
import { float32ToBfloat16 } from "../kernels/convert-bfloat16.ts";
import { quantizeBlocks } from "../kernels/quantize-blocks.ts";
import { quantizeLinearBlocks } from "../kernels/quantize-linear-blocks.ts";

export const createBlocksByLayout = {
  matmul: createMatMulNBitsBlocks,
  gather: createGatherBlocks,
  columns: createDequantizeLinearBlocks,
  rows: createGatherBlocks,
} as const satisfies Record<BlockTask["layout"], typeof createMatMulNBitsBlocks>;

export function* runBlockTask(
  task: BlockTask,
  output: OutputWriter,
  limits: TileLimits,
): Generator<number, TaskResult> {
  const { weight, matrices, shape, format, layout } = task;
  const sums = emptyErrorSums();
  const quantize = layout === "columns" ? quantizeLinearBlocks : quantizeBlocks;
  using reader = new SourceReader(task);
  for (let matrix = 0; matrix < matrices; matrix++) {
    const firstValue = matrix * shape.k * shape.n;
    for (const panel of matrixPanels(task, limits)) {
      const panelMatrix = { shape: panelShape(task, panel), format };
      const into = createBlocksByLayout[layout](panelMatrix.shape, format);
      for (const { rectangle, firstRow } of panelTiles(panel, task, limits)) {
        const values = reader.read({ ...rectangle, start: firstValue + rectangle.start });
        quantize({ values, firstRow }, panelMatrix, into, sums);
        yield (values.length / task.elements) * task.sourceBytes;
      }
      if (layout === "rows" && format.symmetric) makeSigned(into.quantizedValues, format.bits);
      writeBlocks(task, into, panelRectangles(task, matrix, panel), output);
    }
  }
  if (sums.notFinite) return { weight, sums, rejection: "holds values that are not finite" };
  return { weight, sums, rejection: undefined };
}

function panelShape({ shape: { order } }: BlockTask, { inputs, outputs }: MatrixPanel) {
  return { order, k: inputs, n: outputs };
}

/** Turns values around a middle zero point into signed ones. */
export function makeSigned(quantizedValues: Uint8Array, bits: 4 | 8): void {
  const flip = bits === 4 ? 0x88 : 0x80;
  for (let index = 0; index < quantizedValues.length; index++) {
    quantizedValues[index] = (quantizedValues[index] ?? 0) ^ flip;
  }
}

/** Writes the results of a panel, and frees them. */
export function writeBlocks(
  { outputs, scaleType }: Pick<BlockTask, "outputs" | "scaleType">,
  { quantizedValues, scales, zeroPoints }: QuantizedBlocks,
  rectangles: ReturnType<typeof panelRectangles>,
  output: OutputWriter,
): void {
  output.writeRectangle(outputs.quantizedValues, quantizedValues, rectangles.quantizedValues);
  output.writeRectangle(outputs.scales, convertScales(scales, scaleType), rectangles.scales);
  if (outputs.zeroPoints !== undefined) {
    output.writeRectangle(outputs.zeroPoints, zeroPoints, rectangles.zeroPoints);
  }
  releaseBuffers(quantizedValues, scales, zeroPoints);
}

/** Scales as they are written, in the type that the plan gives them. */
export function convertScales(scales: Float32Array, type: FloatType): ArrayBufferView {
  switch (type) {
    case "float32":
      return scales;
    case "float16":
      return Float16Array.from(scales);
    case "bfloat16":
      return float32ToBfloat16(scales);
  }
}
