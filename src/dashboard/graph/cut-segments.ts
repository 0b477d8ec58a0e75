import type { Block } from "./fold-chains.ts";

/**
 * Positions of blocks that are laid out together. Where a later segment follows, its first block is
 * the last one of this segment, of which alone edges lead there.
 */
export type Segment = readonly number[];

/** Cuts a graph where edges of only one block go on: no path leads around that block. */
export function cutSegments(blocks: readonly Block[]): Segment[] {
  const [firstUses, lastUses] = findUses(blocks);
  const segments: number[][] = [];
  let current: number[] = [];
  // How many blocks have edges that go on, and the sum of their positions: of one, its position.
  let [open, sum] = [0, 0];
  const closing = new Map<number, number[]>();
  for (const position of blocks.keys()) {
    current.push(position);
    for (const block of closing.get(position) ?? []) [open, sum] = [open - 1, sum - block];
    const lastUse = lastUses[position] ?? position;
    if (lastUse > position) {
      [open, sum] = [open + 1, sum + position];
      closing.set(lastUse, [...(closing.get(lastUse) ?? []), position]);
    }
    const isInner = sum === current[0] || (firstUses[sum] ?? 0) <= position;
    if (open > 1 || (open === 1 && isInner)) continue;
    segments.push(open === 1 ? [...current.filter((each) => each !== sum), sum] : current);
    current = open === 1 ? [sum] : [];
  }
  return current.length > 1 ? [...segments, current] : segments;
}

/** The positions of the first and the last block that take something of each. */
function findUses(blocks: readonly Block[]): [first: Uint32Array, last: Uint32Array] {
  const first = new Uint32Array(blocks.length).fill(blocks.length);
  const last = Uint32Array.from(blocks.keys());
  for (const [position, { inputs }] of blocks.entries()) {
    for (const input of inputs) {
      first[input] = Math.min(first[input] ?? 0, position);
      last[input] = position;
    }
  }
  return [first, last];
}
