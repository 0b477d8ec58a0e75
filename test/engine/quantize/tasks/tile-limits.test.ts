import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  channelSlices,
  panelTiles,
  sliceTiles,
} from "../../../../src/engine/quantize/tasks/tiles.ts";
import { matrixPanels } from "../../../../src/engine/quantize/tasks/matrix-panels.ts";
import { defaultTileLimits } from "../../../../src/engine/quantize/tasks/tile-limits.ts";
import type { BlockTask } from "../../../../src/engine/quantize/tasks/weight-task.ts";

/** Sizes of a vocabulary's and a large layer's axes too. */
const size = fc.oneof(
  fc.integer({ min: 1, max: 300 }),
  fc.constantFrom(512, 768, 4096, 14_336, 49_152, 152_064, 262_144),
);
const { values, mostValues, resultBytes } = defaultTileLimits;

interface Tiles {
  readonly largest: number;
  readonly sum: number;
}

function measureTiles(tiles: Iterable<{ rectangle: { rows: number; columns: number } }>): Tiles {
  let [largest, sum] = [0, 0];
  for (const { rectangle } of tiles) {
    const count = rectangle.rows * rectangle.columns;
    largest = Math.max(largest, count);
    sum += count;
  }
  return { largest, sum };
}

interface BlockShape {
  readonly order: "kn" | "nk";
  readonly layout: "matmul" | "columns";
  readonly k: number;
  readonly n: number;
  readonly bits: 4 | 8;
  readonly blockSize: number;
}

const blockShapes: fc.Arbitrary<BlockShape> = fc
  .record({
    order: fc.constantFrom("kn" as const, "nk" as const),
    layout: fc.constantFrom("matmul" as const, "columns" as const),
    k: size,
    n: size,
    bits: fc.constantFrom(4 as const, 8 as const),
    blockSize: fc.constantFrom(16, 32, 64, 128, 256),
  })
  .filter(({ k, n }) => k * n < 2e9);

test("a matrix of any shape is quantized in tiles and panels within the limits", () => {
  const check = ({ order, layout, k, n, bits, blockSize }: BlockShape) => {
    if (order === "nk" && layout === "columns") return;
    const format = { bits, blockSize, symmetric: false };
    const task: Pick<BlockTask, "shape" | "format" | "layout"> = {
      shape: { order, k, n },
      format,
      layout,
    };
    let covered = 0;
    for (const panel of matrixPanels(task, defaultTileLimits)) {
      const { largest, sum } = measureTiles(panelTiles(panel, task, defaultTileLimits));
      assert.ok(largest <= mostValues, `a tile of ${largest} values`);
      assert.equal(sum, panel.inputs * panel.outputs);
      covered += sum;
      const blocks = panel.outputs * Math.ceil(panel.inputs / blockSize);
      const bytes = blocks * ((blockSize * bits) / 8 + 5);
      assert.ok(bytes <= resultBytes, `a panel of ${bytes} bytes`);
    }
    assert.equal(covered, k * n);
  };
  check({ order: "kn", layout: "matmul", k: 512, n: 152_064, bits: 4, blockSize: 256 });
  check({ order: "nk", layout: "matmul", k: 1, n: 152_064, bits: 4, blockSize: 64 });
  fc.assert(fc.property(blockShapes, check), { numRuns: 200 });
});

test("channels of any shape are quantized in tiles within the limits", () => {
  const shapes = fc
    .record({ outer: fc.integer({ min: 1, max: 40 }), channels: size, inner: size })
    .filter(({ outer, channels, inner }) => outer * channels * inner < 2e9);
  fc.assert(
    fc.property(shapes, ({ outer, channels, inner }) => {
      const elements = outer * channels * inner;
      const task = { elements, matrices: 1, channels, inner } as const;
      let covered = 0;
      for (const slice of channelSlices(task, defaultTileLimits)) {
        const { largest, sum } = measureTiles(sliceTiles(slice, defaultTileLimits));
        assert.ok(largest <= values, `a tile of ${largest} values`);
        covered += sum;
      }
      assert.equal(covered, elements);
    }),
    { numRuns: 100 },
  );
});
