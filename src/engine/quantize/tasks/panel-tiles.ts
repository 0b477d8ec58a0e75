import { countTileInputs } from "./count-tile-inputs.ts";
import type { MatrixPanel } from "./matrix-panels.ts";
import type { SourceRectangle } from "./source-reader.ts";
import type { TileLimits } from "./tile-limits.ts";
import type { BlockTask } from "./weight-task.ts";

/** Rows of a panel that are read and quantized at once. */
interface PanelTile {
  /** Where the values are in the matrix. */
  readonly rectangle: SourceRectangle;
  /** In the panel. */
  readonly firstRow: number;
}

/** Divides a panel into tiles within the limits. */
export function* panelTiles(
  { firstInput, inputs, firstOutput, outputs }: MatrixPanel,
  { shape: { order, k, n }, format }: Pick<BlockTask, "shape" | "format">,
  limits: TileLimits,
): Generator<PanelTile> {
  const [rows, columns, pitch] = order === "kn" ? [inputs, outputs, n] : [outputs, inputs, k];
  const start = order === "kn" ? firstInput * n + firstOutput : firstOutput * k + firstInput;
  const tileRows =
    order === "kn"
      ? countTileInputs(format.blockSize, outputs, limits)
      : Math.max(1, Math.floor(limits.values / inputs));
  for (let row = 0; row < rows; row += tileRows) {
    const rectangle = {
      start: start + row * pitch,
      rows: Math.min(tileRows, rows - row),
      columns,
      pitch,
    };
    yield { rectangle, firstRow: row };
  }
}
