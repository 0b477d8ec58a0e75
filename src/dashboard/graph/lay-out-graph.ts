import type { ModelGraphNode } from "../../contract/jobs/model-graph.ts";
import { cutSegments, type Segment } from "./cut-segments.ts";
import { type Block, foldChains } from "./fold-chains.ts";
import {
  type Edge,
  layOutSegment,
  type Point,
  type SegmentLayout,
  type Size,
} from "./lay-out-segment.ts";

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

/** Pixels of a block's row, which is a node, and of a block. */
export const rowHeight = 20;
const blockWidth = 168;
const blockPadding = 4;
const segmentGap = 28;

/**
 * Lays a graph out from top to bottom. Rows of nodes are folded into blocks, and the graph is cut
 * where it is narrow: models repeat themselves, and each different part is laid out once.
 */
export function layOutGraph(nodes: readonly Pick<ModelGraphNode, "inputs">[]): GraphLayout {
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
