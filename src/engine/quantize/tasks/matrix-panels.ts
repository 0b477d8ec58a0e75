import { countTileInputs } from "./count-tile-inputs.ts";
import { roundDown } from "./round-down.ts";
import type { TileLimits } from "./tile-limits.ts";
import type { BlockTask } from "./weight-task.ts";

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
