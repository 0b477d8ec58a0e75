import { graphlib, layout } from "@dagrejs/dagre";
import type { ShownNode } from "./shown-part.ts";

/** Nodes of a block from top to bottom, with the middle of its top. */
export interface PlacedBlock extends Point, Size {
  readonly nodes: readonly number[];
}

/** A part of the drawing: what lies in its range of heights is in no other part. */
interface PlacedSegment {
  readonly top: number;
  readonly bottom: number;
  readonly blocks: readonly PlacedBlock[];
  readonly edges: readonly (readonly Point[])[];
}

export interface GraphLayout {
  /** From top to bottom. */
  readonly segments: readonly PlacedSegment[];
  /** The ends of the drawing, pixels at its own size; its top is at 0. */
  readonly left: number;
  readonly right: number;
  readonly bottom: number;
  readonly blockCount: number;
}

type LaidOutNode = Pick<ShownNode, "kind" | "inputs">;

/** Pixels of a block's row, which is a node, and of a block. */
export const rowHeight = 20;
const blockWidth = 236;
const blockPadding = 4;
const segmentGap = 28;

/**
 * Lays a graph out from top to bottom. Rows of nodes are folded into blocks, and the graph is cut
 * where it is narrow: models repeat themselves, and each different part is laid out once.
 */
export function layOutGraph(nodes: readonly LaidOutNode[]): GraphLayout {
  const blocks = foldChains(nodes);
  const sizes = blocks.map((block) => ({
    width: blockWidth,
    height: block.nodes.length * rowHeight + 2 * blockPadding,
  }));
  const known = new Map<string, SegmentLayout>();
  const segments: PlacedSegment[] = [];
  let [top, before] = [0, -1];
  for (const [index, segment] of cutSegments(blocks).entries()) {
    const [first = 0] = segment;
    const isJoined = index > 0 && first === before;
    if (isJoined) top -= sizes[first]?.height ?? 0;
    else if (index > 0) top += segmentGap;
    const shape = describeShape(segment, blocks, sizes);
    const key = JSON.stringify(shape);
    const layout = known.get(key) ?? layOutSegment(shape);
    known.set(key, layout);
    segments.push(placeSegment({ segment, blocks, sizes, layout, top, isJoined }));
    top += layout.height;
    before = segment.at(-1) ?? -1;
  }
  return { segments, ...findEnds(segments), blockCount: blocks.length };
}

function describeShape(segment: Segment, blocks: readonly Block[], sizes: readonly Size[]) {
  const places = new Map(segment.map((block, place) => [block, place]));
  const edges = segment.flatMap((block, to) =>
    (blocks[block]?.inputs ?? []).flatMap((input): Edge[] => {
      const from = places.get(input);
      return from === undefined ? [] : [[from, to]];
    }),
  );
  const own = segment.flatMap((block) => sizes[block] ?? []);
  return { sizes: own, edges };
}

interface Placing {
  readonly segment: Segment;
  readonly blocks: readonly Block[];
  readonly sizes: readonly Size[];
  readonly layout: SegmentLayout;
  readonly top: number;
  /** Whether the first block was placed with the segment before. */
  readonly isJoined: boolean;
}

function placeSegment({ segment, blocks, sizes, layout, top, isJoined }: Placing): PlacedSegment {
  const placed = segment.flatMap((block, place): PlacedBlock[] => {
    const at = layout.tops[place];
    const size = sizes[block];
    if (at === undefined || size === undefined || (isJoined && place === 0)) return [];
    return [{ ...size, x: at.x, y: at.y + top, nodes: blocks[block]?.nodes ?? [] }];
  });
  const edges = layout.edges.map((points) => points.map(({ x, y }) => ({ x, y: y + top })));
  return { top, bottom: top + layout.height, blocks: placed, edges };
}

function findEnds(segments: readonly PlacedSegment[]) {
  let [left, right] = [0, 0];
  for (const { blocks } of segments) {
    for (const { x, width } of blocks) {
      left = Math.min(left, x - width / 2);
      right = Math.max(right, x + width / 2);
    }
  }
  return { left, right, bottom: segments.at(-1)?.bottom ?? 0 };
}

interface Size {
  readonly width: number;
  readonly height: number;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Where things are, relative to the middle of the first block's top. */
interface SegmentLayout {
  /** Middles of the blocks' tops. */
  readonly tops: readonly Point[];
  /** Of each edge the points that it leads through, the ends included. */
  readonly edges: readonly (readonly Point[])[];
  readonly height: number;
}

/** An edge between blocks by their places in the segment. */
type Edge = readonly [from: number, to: number];

interface SegmentShape {
  readonly sizes: readonly Size[];
  readonly edges: readonly Edge[];
}

/** Larger segments are only put into rows: their edges may cross. */
const mostOrdered = { blocks: 500, edges: 1500 } as const;
const origin: Point = { x: 0, y: 0 };
const gap = { x: 24, y: 28 } as const;

/** Lays blocks out in rows from top to bottom, with few crossings. */
function layOutSegment(shape: SegmentShape): SegmentLayout {
  const { sizes, edges } = shape;
  const isSmall = sizes.length <= mostOrdered.blocks && edges.length <= mostOrdered.edges;
  const placed = isSmall ? placeInOrder(shape) : placeInRows(shape);
  return alignEnds(shape, placed);
}

interface Placed {
  readonly tops: Point[];
  /** Without the ends. */
  readonly bends: readonly (readonly Point[])[];
}

function placeInOrder({ sizes, edges }: SegmentShape): Placed {
  const graph = new graphlib.Graph();
  graph.setGraph({ ranksep: gap.y, nodesep: gap.x, edgesep: gap.x / 2 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const [index, { width, height }] of sizes.entries()) {
    graph.setNode(String(index), { width, height });
  }
  for (const [from, to] of edges) graph.setEdge(String(from), String(to));
  layout(graph);
  const tops = sizes.map(({ height }, index) => {
    const { x, y } = graph.node(String(index));
    return { x, y: y - height / 2 };
  });
  const bends = edges.map(([from, to]) => {
    const { points = [] } = graph.edge(String(from), String(to));
    return points.slice(1, -1).map(({ x, y }: Point) => ({ x, y }));
  });
  return { tops, bends };
}

/** Each block is in the row after the last one of its inputs. */
function placeInRows({ sizes, edges }: SegmentShape): Placed {
  const rows = new Uint32Array(sizes.length);
  for (const [from, to] of edges) rows[to] = Math.max(rows[to] ?? 0, (rows[from] ?? 0) + 1);
  const places: number[][] = [];
  for (const [index, row] of rows.entries()) (places[row] ??= []).push(index);
  const tops = sizes.map(() => origin);
  let y = 0;
  for (const row of places) {
    let x = 0;
    for (const index of row) {
      const { width = 0 } = sizes[index] ?? {};
      tops[index] = { x: x + width / 2, y };
      x += width + gap.x;
    }
    y += gap.y - least(row.map((index) => -(sizes[index]?.height ?? 0)));
  }
  return { tops, bends: edges.map(() => []) };
}

/** Puts the first block at the top, and the last one, which feeds no other, under it. */
function alignEnds({ sizes, edges }: SegmentShape, { tops, bends }: Placed): SegmentLayout {
  const [first = origin] = tops;
  const heightAt = (index: number) => sizes[index]?.height ?? 0;
  const inner = tops.slice(1, -1);
  const start = least(inner.map(({ y }) => y)) - heightAt(0) - gap.y;
  const shift = (point: Point) => ({ x: point.x - first.x, y: point.y - Math.min(first.y, start) });
  const moved = [origin, ...tops.slice(1).map(shift)];
  const last = moved.length - 1;
  const bottoms = moved.slice(0, last).map(({ y }, index) => y + heightAt(index));
  if (last > 0) moved[last] = { x: 0, y: gap.y - least(bottoms.map((y) => -y)) };
  const topAt = (index: number) => moved[index] ?? origin;
  const bottomAt = (index: number) => ({ x: topAt(index).x, y: topAt(index).y + heightAt(index) });
  return {
    tops: moved,
    edges: edges.map(([from, to], index) => [
      bottomAt(from),
      ...(bends[index] ?? []).map(shift),
      topAt(to),
    ]),
    height: bottomAt(last).y,
  };
}

function least(values: readonly number[]): number {
  return values.reduce((found, value) => Math.min(found, value), Infinity);
}

/**
 * Positions of blocks that are laid out together. Where a later segment follows, its first block is
 * the last one of this segment: only its edges lead there.
 */
type Segment = readonly number[];

/** Cuts a graph where edges of only one block go on: no path leads around that block. */
function cutSegments(blocks: readonly Block[]): Segment[] {
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

/** Nodes in a row, each of which feeds only the next, shown as one; inputs and outputs stand apart. */
interface Block {
  /** Positions of its nodes, in the order of the graph. */
  readonly nodes: readonly number[];
  /** Positions of the blocks that its first node takes outputs of; they come before it. */
  readonly inputs: readonly number[];
}

/** More nodes of a row begin another block. */
const maxBlockNodes = 12;

/** Folds the nodes of a graph into blocks, in an order in which each comes after its inputs. */
function foldChains(nodes: readonly LaidOutNode[]): Block[] {
  // ONNX files are sorted: other edges would be circles.
  const inputs = nodes.map((node, position) => node.inputs.filter((each) => each < position));
  const consumers = new Uint32Array(nodes.length);
  for (const each of inputs) {
    for (const input of each) consumers[input] = (consumers[input] ?? 0) + 1;
  }
  const blocks: { nodes: number[]; inputs: number[] }[] = [];
  const blockAt = new Uint32Array(nodes.length);
  for (const [position, taken] of inputs.entries()) {
    const before = findRowEnd(nodes, position, { taken, consumers });
    const row = before === undefined ? undefined : blocks[blockAt[before] ?? 0];
    if (row !== undefined && row.nodes.length < maxBlockNodes) {
      blockAt[position] = blockAt[before ?? 0] ?? 0;
      row.nodes.push(position);
    } else {
      blockAt[position] = blocks.length;
      const sources = new Set(taken.map((each) => blockAt[each] ?? 0));
      blocks.push({ nodes: [position], inputs: [...sources] });
    }
  }
  return blocks;
}

/** The node whose row a node goes on: that of its only input, which feeds no other. */
function findRowEnd(
  nodes: readonly LaidOutNode[],
  position: number,
  { taken, consumers }: { readonly taken: readonly number[]; readonly consumers: Uint32Array },
): number | undefined {
  const [before, ...others] = taken;
  if (before === undefined || others.length > 0 || consumers[before] !== 1) return undefined;
  return nodes[before]?.kind === nodes[position]?.kind ? before : undefined;
}
