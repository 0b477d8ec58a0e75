import type { BlockFormat } from "./block-format.ts";

interface SeparatedOffsets {
  /** Rows of values around the offsets of their blocks, each followed by these offsets. */
  readonly values: Float32Array;
  /** What the offsets that are stored are to be multiplied by. */
  readonly offsetScale: number;
}

/**
 * Takes the offset out of each block of some rows: what the block's least value, and so each other
 * one that lies on a grid from there to the largest, is away from the nearest grid through zero. An
 * offset is the weight of the sum of the block's inputs. It is multiplied by the root of their
 * number, so that its error counts as much as those of the block's values do.
 */
export function separateOffsets(
  values: Float32Array,
  { rows, columns }: { readonly rows: number; readonly columns: number },
  { bits, blockSize }: BlockFormat,
): SeparatedOffsets {
  const largestCode = 2 ** bits - 1;
  const blocks = columns / blockSize;
  const root = Math.sqrt(blockSize);
  const separated = new Float32Array(rows * (columns + blocks));
  for (let row = 0, from = 0, to = 0; row < rows; row++, to += blocks) {
    const offsets = to + columns;
    for (let block = 0; block < blocks; block++) {
      const offset = findOffset(values, from, blockSize, largestCode);
      for (const end = from + blockSize; from < end; from++, to++) {
        separated[to] = Number(values[from]) - offset;
      }
      separated[offsets + block] = offset * root;
    }
  }
  return { values: separated, offsetScale: 1 / root };
}

function findOffset(
  values: Float32Array,
  start: number,
  blockSize: number,
  largestCode: number,
): number {
  let [least, largest] = [Infinity, -Infinity];
  for (let at = start; at < start + blockSize; at++) {
    const value = Number(values[at]);
    if (value < least) least = value;
    if (value > largest) largest = value;
  }
  if (least === largest) return least;
  const distance = (steps: number) => {
    const step = (largest - least) / steps;
    let sum = 0;
    for (let at = start; at < start + blockSize; at++) {
      const exact = (Number(values[at]) - least) / step;
      sum += (exact - Math.round(exact)) ** 2;
    }
    return sum * step ** 2;
  };
  const steps = distance(largestCode - 1) < distance(largestCode) ? largestCode - 1 : largestCode;
  const step = (largest - least) / steps;
  const zeroPoint = Math.min(steps, Math.max(0, Math.round(-least / step)));
  return least + zeroPoint * step;
}
