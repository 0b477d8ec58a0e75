import { graphlib, layout } from "@dagrejs/dagre";

export interface Size {
  readonly width: number;
  readonly height: number;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Where things are, relative to the middle of the first block's top. */
export interface SegmentLayout {
  /** Middles of the blocks' tops. */
  readonly tops: readonly Point[];
  /** Of each edge the points that it leads through, the ends included. */
  readonly edges: readonly (readonly Point[])[];
  readonly height: number;
}

/** An edge between blocks by their places in the segment. */
export type Edge = readonly [from: number, to: number];

interface SegmentShape {
  readonly sizes: readonly Size[];
  readonly edges: readonly Edge[];
}

/** Larger segments are only put into rows: their edges may cross. */
const mostOrdered = { blocks: 500, edges: 1500 } as const;
const origin: Point = { x: 0, y: 0 };
const gap = { x: 24, y: 28 } as const;

/** Lays blocks out in rows from top to bottom, with few crossings. */
export function layOutSegment(shape: SegmentShape): SegmentLayout {
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

/** Each block is in the row behind the last one of its inputs. */
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
