import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { type GraphLayout, layOutGraph } from "../../src/dashboard/graph/lay-out-graph.ts";

interface Node {
  readonly kind: "node";
  readonly inputs: number[];
}

const kind = "node" as const;

/** Blocks of a transformer: two branches that join, and a way around them. */
function makeTower(blocks: number): Node[] {
  const nodes: Node[] = [{ kind, inputs: [] }];
  for (let block = 0; block < blocks; block++) {
    const start = nodes.length - 1;
    const branches = [start, start, start].map((from) => {
      nodes.push({ kind, inputs: [from] });
      nodes.push({ kind, inputs: [nodes.length - 1] });
      return nodes.length - 1;
    });
    nodes.push({ kind, inputs: branches });
    nodes.push({ kind, inputs: [nodes.length - 1, start] });
  }
  return nodes;
}

function assertReadable({ segments }: GraphLayout, nodes: readonly Node[]): void {
  const blocks = segments.flatMap((segment) => segment.blocks);
  const drawn = blocks.flatMap((block) => block.nodes);
  assert.deepEqual(
    drawn.toSorted((a, b) => a - b),
    [...nodes.keys()],
    "each node is drawn once",
  );
  for (const [index, { x, y, height, width }] of blocks.entries()) {
    const hidden = blocks
      .slice(index + 1)
      .find(
        (other) =>
          Math.abs(other.x - x) < width && other.y < y + height && y < other.y + other.height,
      );
    assert.equal(hidden, undefined, "no block covers another one");
  }
  for (const { top, bottom, edges } of segments) {
    for (const points of edges) {
      const heights = points.map(({ y }) => y);
      assert.ok((heights[0] ?? 0) < (heights.at(-1) ?? 0), "edges lead down");
      assert.ok(Math.min(...heights) >= top && Math.max(...heights) <= bottom);
    }
  }
}

test("graphs of any shape are laid out without blocks that cover others", () => {
  const node = (position: number) =>
    fc
      .array(fc.nat({ max: Math.max(0, position - 1) }), { maxLength: position === 0 ? 0 : 3 })
      .map((inputs) => ({ kind, inputs: [...new Set(inputs)] }));
  const graphs = fc
    .integer({ min: 1, max: 40 })
    .chain((count) => fc.tuple(...Array.from({ length: count }, (_, index) => node(index))));
  fc.assert(
    fc.property(graphs, (nodes) => assertReadable(layOutGraph(nodes), nodes)),
    { numRuns: 60 },
  );
});

test("a tower of equal blocks is cut into segments, one under the other", () => {
  const nodes = makeTower(12);
  const layout = layOutGraph(nodes);
  assertReadable(layout, nodes);
  assert.ok(layout.segments.length >= 12);
});

test("a graph of 50,000 nodes is laid out", () => {
  const nodes = makeTower(6250);
  const layout = layOutGraph(nodes);
  assert.equal(
    layout.segments.flatMap(({ blocks }) => blocks.flatMap((each) => each.nodes)).length,
    nodes.length,
  );
  assert.ok(layout.right - layout.left < 2000, "it does not drift aside");
});

test("a part that is too wide to be ordered is put into rows", () => {
  const nodes: Node[] = [
    { kind, inputs: [] },
    ...Array.from({ length: 900 }, () => ({ kind, inputs: [0] })),
  ];
  nodes.push({ kind, inputs: [...nodes.keys()] });
  assertReadable(layOutGraph(nodes), nodes);
});
