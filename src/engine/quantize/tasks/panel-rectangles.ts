import { countBlocks } from "../kernels/block-format.ts";
import type { MatrixPanel } from "./matrix-panels.ts";
import type { OutputRectangle } from "./output-writer.ts";
import type { BlockTask, TaskOutputs } from "./weight-task.ts";

type PanelRectangles = Readonly<Record<keyof TaskOutputs, OutputRectangle>>;

/** Where the results of a panel of one of the weight's matrices are in the task's outputs. */
export function panelRectangles(
  task: BlockTask,
  matrix: number,
  panel: MatrixPanel,
): PanelRectangles {
  return task.layout === "columns"
    ? inputRowRectangles(task, matrix, panel)
    : outputRowRectangles(task, matrix, panel);
}

/** Arrays with a row for each input or block: [K, N] and [blocks, N]. */
function inputRowRectangles(
  { shape: { k, n }, format, scaleType }: BlockTask,
  matrix: number,
  { firstInput, inputs, firstOutput, outputs }: MatrixPanel,
): PanelRectangles {
  const columns = { rowElements: n, firstElement: firstOutput, elements: outputs };
  const blockRows = {
    ...columns,
    firstRow: matrix * countBlocks(k, format) + firstInput / format.blockSize,
    rows: countBlocks(inputs, format),
  };
  const { bits } = format;
  return {
    quantizedValues: { ...columns, bits, firstRow: matrix * k + firstInput, rows: inputs },
    scales: { ...blockRows, bits: scaleBits[scaleType] },
    zeroPoints: { ...blockRows, bits },
  };
}

/** Arrays with a row for each output; elements of packed ones are bytes. */
function outputRowRectangles(
  { shape: { k, n }, format, layout, scaleType }: BlockTask,
  matrix: number,
  { firstInput, inputs, firstOutput, outputs }: MatrixPanel,
): PanelRectangles {
  const { bits, blockSize } = format;
  const rows = { firstRow: matrix * n + firstOutput, rows: outputs };
  const packedBytes = (count: number) => Math.ceil((count * bits) / 8);
  const valueBytes = (count: number) =>
    packedBytes(layout === "matmul" ? countBlocks(count, format) * blockSize : count);
  const firstBlock = firstInput / blockSize;
  const [panelBlocks, allBlocks] = [countBlocks(inputs, format), countBlocks(k, format)];
  return {
    quantizedValues: {
      ...rows,
      bits: 8,
      rowElements: valueBytes(k),
      firstElement: packedBytes(firstInput),
      elements: valueBytes(inputs),
    },
    scales: {
      ...rows,
      bits: scaleBits[scaleType],
      rowElements: allBlocks,
      firstElement: firstBlock,
      elements: panelBlocks,
    },
    zeroPoints: {
      ...rows,
      bits: 8,
      rowElements: packedBytes(allBlocks),
      firstElement: packedBytes(firstBlock),
      elements: packedBytes(panelBlocks),
    },
  };
}

const scaleBits = { float32: 32, float16: 16, bfloat16: 16 } as const;
