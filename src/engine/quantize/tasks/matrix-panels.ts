import { countTileInputs, roundDown, type TileLimits } from "./tile-limits.ts";
import type { OutputRectangle } from "./output-writer.ts";
import type { BlockTask, TaskOutputs } from "./weight-task.ts";
import { countBlocks } from "../kernels/block-format.ts";

/**
 * A part of a matrix whose results are kept and written together: all inputs of some outputs, or
 * whole pairs of blocks of them.
 */
export interface MatrixPanel {
  readonly firstInput: number;
  readonly inputs: number;
  readonly firstOutput: number;
  readonly outputs: number;
}

type BlockMatrixTask = Pick<BlockTask, "shape" | "format" | "layout">;
type WrittenMatrix = BlockMatrixTask & Pick<BlockTask, "scaleType">;

/** Fewest outputs of a panel that could have more: short rows are slow to read. */
const fewestOutputs = 1024;

/** Divides a matrix into panels within the limits. */
export function* matrixPanels(task: BlockMatrixTask, limits: TileLimits): Generator<MatrixPanel> {
  const { k, n } = task.shape;
  const size = panelSize(task, limits);
  for (let firstInput = 0; firstInput < k; firstInput += size.inputs) {
    const inputs = Math.min(size.inputs, k - firstInput);
    for (let firstOutput = 0; firstOutput < n; firstOutput += size.outputs) {
      const outputs = Math.min(size.outputs, n - firstOutput);
      yield { firstInput, inputs, firstOutput, outputs };
    }
  }
}

type PanelSize = Pick<MatrixPanel, "inputs" | "outputs">;

function panelSize({ shape, format, layout }: BlockMatrixTask, limits: TileLimits): PanelSize {
  const { order, k, n } = shape;
  const { blockSize } = format;
  if (order === "nk") {
    const inputs = Math.min(k, roundDown(limits.mostValues / 4, 2 * blockSize));
    const outputBytes = Math.ceil(inputs / blockSize) * blockBytes(format);
    const fitting = Math.min(limits.mostValues / inputs, limits.resultBytes / outputBytes);
    return { inputs, outputs: Math.max(4, Math.floor(fitting)) };
  }
  const outputs = Math.min(n, roundDown(limits.mostValues / blockSize, 2));
  return layout === "columns"
    ? { inputs: countTileInputs(blockSize, outputs, limits), outputs }
    : deepPanelSize(k, { ...format, outputs }, limits);
}

/** A panel of all inputs of some outputs, whose results are one run; if too large, of fewer. */
function deepPanelSize(
  k: number,
  { outputs, ...format }: BlockTask["format"] & Pick<PanelSize, "outputs">,
  { resultBytes }: TileLimits,
): PanelSize {
  const { blockSize } = format;
  const bytes = blockBytes(format);
  const fitting = roundDown(resultBytes / (Math.ceil(k / blockSize) * bytes), 2);
  const fewest = Math.min(outputs, fewestOutputs);
  if (fitting >= fewest) return { inputs: k, outputs: Math.min(outputs, fitting) };
  const blocks = roundDown(resultBytes / bytes / fewest, 2);
  return { inputs: Math.min(k, blocks * blockSize), outputs: fewest };
}

/** Besides its values, a block has a scale and at most one byte of zero point. */
function blockBytes({ blockSize, bits }: BlockTask["format"]): number {
  return (blockSize * bits) / 8 + 5;
}

type PanelRectangles = Readonly<Record<keyof TaskOutputs, OutputRectangle>>;

/** Where the results of a panel of one of the weight's matrices are in the task's outputs. */
export function panelRectangles(
  task: WrittenMatrix,
  matrix: number,
  panel: MatrixPanel,
): PanelRectangles {
  return task.layout === "columns"
    ? inputRowRectangles(task, matrix, panel)
    : outputRowRectangles(task, matrix, panel);
}

/** Arrays with a row for each input or block: [K, N] and [blocks, N]. */
function inputRowRectangles(
  { shape: { k, n }, format, scaleType }: WrittenMatrix,
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
  { shape: { k, n }, format, layout, scaleType }: WrittenMatrix,
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
