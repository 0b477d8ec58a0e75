import { roundDown } from "./round-down.ts";
import type { TileLimits } from "./tile-limits.ts";

/** Rows of a tile of a `kn` matrix: pairs of blocks, or one block where a pair is too large. */
export function countTileInputs(blockSize: number, outputs: number, limits: TileLimits): number {
  const unit = 2 * blockSize * outputs <= limits.mostValues ? 2 * blockSize : blockSize;
  return roundDown(limits.values / outputs, unit);
}
