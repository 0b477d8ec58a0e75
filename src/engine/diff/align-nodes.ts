import { at } from "../onnx/at.ts";
import type { DescribedNode, ModelDescription } from "../../contract/models/model-description.ts";

/** Positions in the second model by positions in the first one. */
export type Alignment = ReadonlyMap<number, number>;

/** Cells of the table that aligns what lies between two nodes that are known to be the same. */
const maxCells = 4_000_000;

/**
 * Finds which nodes of two models are the same: by names where the operator is the same too, by
 * what they compute with, then by their order between those that are known.
 */
export function alignNodes(before: ModelDescription, after: ModelDescription): Alignment {
  const aligned = new Aligner(before.nodes, after.nodes);
  const [ofBefore, ofAfter] = [signatures(before), signatures(after)];
  aligned.matchUnique((node) => node.name && `${node.op}\0${node.name}`);
  aligned.matchUnique((node) => node.outputs[0] && `${node.op}\0${node.outputs[0]}`);
  aligned.matchUnique((_, position, isBefore) => (isBefore ? ofBefore : ofAfter)[position]);
  aligned.matchGaps((node) => `${node.op}\0${node.attributes}`);
  aligned.matchGaps((node) => node.op);
  return aligned.pairs;
}

/** What a node computes with: its operator, its attributes and the contents of its weights. */
function signatures({ nodes, weights }: ModelDescription): (string | undefined)[] {
  const digests = new Map(
    weights.map(({ name, digest, type, shape }) => [name, `${digest} ${type} ${shape.join()}`]),
  );
  return nodes.map(({ op, attributes, inputs }) => {
    const taken = inputs.map((input) => digests.get(input) ?? "");
    // Without weights of its own it says nothing.
    return taken.some((text) => text !== "") ? [op, attributes, ...taken].join("\0") : undefined;
  });
}

type NodeKey = (node: DescribedNode, position: number, isBefore: boolean) => string | undefined;

class Aligner {
  readonly pairs = new Map<number, number>();
  readonly #taken = new Set<number>();
  readonly #before: readonly DescribedNode[];
  readonly #after: readonly DescribedNode[];

  constructor(before: readonly DescribedNode[], after: readonly DescribedNode[]) {
    this.#before = before;
    this.#after = after;
  }

  /** Pairs nodes whose key no other node of their model has. */
  matchUnique(key: NodeKey): void {
    const before = this.#uniquePositions(this.#before, key, (i) => this.pairs.has(i), true);
    const after = this.#uniquePositions(this.#after, key, (i) => this.#taken.has(i), false);
    for (const [text, position] of before) {
      const other = after.get(text);
      if (position !== undefined && other !== undefined) this.#pair(position, other);
    }
  }

  /** Pairs nodes of the same key in their order, between those that are paired. */
  matchGaps(key: (node: DescribedNode) => string): void {
    for (const [start, end, otherStart, otherEnd] of this.#gaps()) {
      const before = range(start, end).filter((i) => !this.pairs.has(i));
      const after = range(otherStart, otherEnd).filter((i) => !this.#taken.has(i));
      const keys = before.map((i) => key(at(this.#before, i)));
      const others = after.map((i) => key(at(this.#after, i)));
      for (const [i, j] of longestCommonSubsequence(keys, others)) {
        this.#pair(at(before, i), at(after, j));
      }
    }
  }

  #pair(before: number, after: number): void {
    this.pairs.set(before, after);
    this.#taken.add(after);
  }

  #uniquePositions(
    nodes: readonly DescribedNode[],
    key: NodeKey,
    isPaired: (position: number) => boolean,
    isBefore: boolean,
  ): ReadonlyMap<string, number | undefined> {
    const positions = new Map<string, number | undefined>();
    for (const [position, node] of nodes.entries()) {
      if (isPaired(position)) continue;
      const text = key(node, position, isBefore);
      if (text) positions.set(text, positions.has(text) ? undefined : position);
    }
    return positions;
  }

  /** Ranges between pairs that are in the same order in both models. */
  #gaps(): (readonly [number, number, number, number])[] {
    const gaps: (readonly [number, number, number, number])[] = [];
    let [start, otherStart] = [0, 0];
    const pairs = [...this.pairs].toSorted(([a], [b]) => a - b);
    for (const [before, after] of increasing(pairs)) {
      if (before > start && after > otherStart) gaps.push([start, before, otherStart, after]);
      [start, otherStart] = [before + 1, after + 1];
    }
    gaps.push([start, this.#before.length, otherStart, this.#after.length]);
    return gaps;
  }
}

/** The longest part of the pairs in which the second positions rise too. */
function increasing(pairs: readonly (readonly [number, number])[]): (readonly [number, number])[] {
  const tails: number[] = [];
  const previous: (number | undefined)[] = [];
  for (const [i, [, value]] of pairs.entries()) {
    let [low, high] = [0, tails.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (at(pairs, at(tails, middle))[1] < value) low = middle + 1;
      else high = middle;
    }
    previous[i] = low === 0 ? undefined : tails[low - 1];
    tails[low] = i;
  }
  const chosen: (readonly [number, number])[] = [];
  for (let i = tails.at(-1); i !== undefined; i = previous[i]) chosen.push(at(pairs, i));
  return chosen.toReversed();
}

/** Pairs of positions of equal texts, as many as there can be in order; none of too long lists. */
function longestCommonSubsequence(
  before: readonly string[],
  after: readonly string[],
): [number, number][] {
  const width = after.length + 1;
  if (before.length * after.length > maxCells) return [];
  const lengths = new Uint32Array((before.length + 1) * width);
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      lengths[i * width + j] =
        before[i] === after[j]
          ? at(lengths, (i + 1) * width + j + 1) + 1
          : Math.max(at(lengths, (i + 1) * width + j), at(lengths, i * width + j + 1));
    }
  }
  const pairs: [number, number][] = [];
  for (let [i, j] = [0, 0]; i < before.length && j < after.length;) {
    if (before[i] === after[j]) pairs.push([i++, j++]);
    else if (at(lengths, (i + 1) * width + j) >= at(lengths, i * width + j + 1)) i++;
    else j++;
  }
  return pairs;
}

function range(start: number, end: number): number[] {
  return Array.from({ length: end - start }, (_, i) => start + i);
}
