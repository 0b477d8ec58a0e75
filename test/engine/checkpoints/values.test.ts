import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import {
  CheckpointValues,
  type StoredRows,
} from "../../../src/engine/checkpoints/checkpoint-values.ts";
import {
  encodedBytes,
  encodings,
  type Encoding,
} from "../../../src/engine/checkpoints/encodings.ts";

/** Bytes of blocks, and the float32 numbers that they stand for. */
const recorded = z.record(z.string(), z.object({ bytes: z.base64(), values: z.base64() }));
const recordedFile = fileURLToPath(new URL("encodings.json", import.meta.url));

async function store(t: TestContext, bytes: Uint8Array): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "values-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = path.join(folder, "weights");
  await writeFile(file, bytes);
  return file;
}

function readAll(piece: StoredRows, [from, to]: readonly [number, number]): number[] {
  using values = new CheckpointValues([piece]);
  const into = new Float32Array(to - from);
  values.read(from, into);
  return [...into];
}

const all = recorded.parse(JSON.parse(await readFile(recordedFile, "utf8")));

const [floats, blocks, kBlocks] = [
  ["F16", "BF16"],
  ["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "IQ4_NL"],
  ["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS"],
] as const;

for (const encoding of [...floats, ...blocks, ...kBlocks]) {
  test(`${encoding} has the values of gguf's Python, in any range`, async (t) => {
    const { bytes, values: expected } = all[encoding] ?? { bytes: "", values: "" };
    const values = [...new Float32Array(new Uint8Array(Buffer.from(expected, "base64")).buffer)];
    assert.equal(values.length, 512);
    const [before, content] = [Buffer.alloc(6), Buffer.from(bytes, "base64")];
    const path = await store(t, Buffer.concat([before, content]));
    const columns = values.length / 2;
    const piece = { kind: "stored", path, offset: 6, encoding, rows: 2, columns } as const;
    assert.deepEqual(readAll(piece, [0, values.length]), values);
    assert.deepEqual(readAll(piece, [3, values.length - 5]), values.slice(3, -5));
  });
}

test("every code of E4M3 has its value", async (t) => {
  const path = await store(
    t,
    Uint8Array.from({ length: 256 }, (_, code) => code),
  );
  const piece = {
    kind: "stored",
    path,
    offset: 0,
    encoding: "F8_E4M3",
    rows: 1,
    columns: 256,
  } as const;
  const values = readAll(piece, [0, 256]);
  const named = [0x00, 0x01, 0x08, 0x38, 0x7e, 0xb8, 0x7f].map((code) => values[code]);
  assert.deepEqual(named, [0, 2 ** -9, 2 ** -6, 1, 448, -1, NaN]);
});

test("scales of blocks multiply the rows and columns that they are for", async (t) => {
  const path = await store(
    t,
    Uint8Array.from({ length: 24 }, () => 0x38),
  );
  const scalesPath = await store(t, new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer));
  const scales = {
    kind: "stored",
    path: scalesPath,
    offset: 0,
    encoding: "F32",
    rows: 2,
    columns: 2,
  } as const;
  const blockScales = { blockRows: 2, blockColumns: 4, firstRow: 1, scales };
  const piece = {
    kind: "stored",
    path,
    offset: 6,
    encoding: "F8_E4M3",
    rows: 2,
    columns: 6,
    blockScales,
  } as const;
  assert.deepEqual(readAll(piece, [0, 12]), [1, 1, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4]);
  assert.deepEqual(readAll(piece, [5, 8]), [2, 3, 3]);
});

test("rows whose halves are interleaved are read in their own order", async (t) => {
  const path = await store(
    t,
    new Uint8Array(Float32Array.from({ length: 16 }, (_, i) => i).buffer),
  );
  const piece = {
    kind: "stored",
    path,
    offset: 0,
    encoding: "F32",
    rows: 8,
    columns: 2,
    interleavedRows: 4,
  } as const;
  assert.deepEqual(readAll(piece, [0, 16]), [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]);
  assert.deepEqual(readAll(piece, [3, 6]), [5, 2, 3]);
});

test("pieces follow one another, and a read beyond the last is an error", async (t) => {
  const path = await store(t, new Uint8Array(Float32Array.of(1, 2, 3).buffer));
  const piece = { kind: "stored", path, encoding: "F32", rows: 1 } as const;
  const [last, first] = [
    { ...piece, offset: 0, columns: 2 },
    { ...piece, offset: 8, columns: 1, addend: 1 },
  ];
  using values = new CheckpointValues([first, last]);
  const into = new Float32Array(3);
  values.read(0, into);
  assert.deepEqual([...into], [4, 1, 2]);
  assert.throws(() => values.read(1, into), RangeError);
});

test("a number of values that is no whole blocks has no bytes", () => {
  for (const [name, { blockValues, blockBytes }] of Object.entries(encodings)) {
    assert.equal(encodedBytes(name as Encoding, 2 * blockValues), 2 * blockBytes);
  }
  assert.throws(() => encodedBytes("Q4_K", 100), RangeError);
});
