import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { readSafetensors } from "../../../src/engine/checkpoints/read-safetensors.ts";

interface Parts {
  readonly header: unknown;
  readonly body?: Uint8Array;
  /** Of the header, where the file lies. */
  readonly length?: bigint;
}

async function writeFileOf(t: TestContext, { header, body, length }: Parts): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "safetensors-"));
  t.after(() => rm(folder, { recursive: true }));
  const text = Buffer.from(typeof header === "string" ? header : JSON.stringify(header));
  const first = Buffer.alloc(8);
  first.writeBigUInt64LE(length ?? BigInt(text.length));
  const file = path.join(folder, "weights.safetensors");
  await writeFile(file, Buffer.concat([first, text, body ?? Buffer.alloc(0)]));
  return file;
}

function tensor(begin: number, end: number, fields: object = {}): object {
  return { dtype: "F32", shape: [(end - begin) / 4], data_offsets: [begin, end], ...fields };
}

test("tensors are found where the header says, behind it", async (t) => {
  const header = { __metadata__: { format: "pt" }, b: tensor(8, 12), a: tensor(0, 8) };
  const file = await writeFileOf(t, { header, body: Buffer.alloc(12) });
  const start = 8 + JSON.stringify(header).length;
  assert.deepEqual(readSafetensors(file), [
    { name: "b", path: file, offset: start + 8, encoding: "F32", dims: [1] },
    { name: "a", path: file, offset: start, encoding: "F32", dims: [2] },
  ]);
});

const lies: readonly [what: string, parts: Parts, code: string, message: RegExp][] = [
  [
    "a length of the header beyond the file",
    { header: {}, length: 1000n },
    "model_truncated",
    /^weights\.safetensors ends early: its header ends at 1008, it at 10$/,
  ],
  [
    "a length of the header beyond 16 MiB",
    { header: {}, length: 2n ** 40n },
    "model_invalid",
    /^weights\.safetensors: the header's length is 1099511627776 bytes, and may have 16777216$/,
  ],
  [
    "more tensors than any model has",
    {
      header: Object.fromEntries(
        Array.from({ length: 20_001 }, (_, index) => [`t${index}`, tensor(0, 0)]),
      ),
    },
    "model_invalid",
    /^weights\.safetensors: the header has 20001 tensors, and may have 20000$/,
  ],
  ["a header that is no JSON", { header: "{" }, "model_invalid", /the header is not a JSON object/],
  [
    "offsets that do not fit the shape",
    { header: { a: tensor(0, 8, { shape: [3] }) }, body: Buffer.alloc(8) },
    "model_invalid",
    /tensor "a": data_offsets: 0 to 8 are 8 bytes, and F32 of shape \[3\] needs 12/,
  ],
  [
    "a size of an axis that is negative",
    { header: { a: tensor(0, 4, { shape: [-1] }) }, body: Buffer.alloc(4) },
    "model_invalid",
    /tensor "a": shape\.0/,
  ],
  [
    "tensors that overlap",
    { header: { a: tensor(0, 8), b: tensor(4, 12) }, body: Buffer.alloc(12) },
    "model_invalid",
    /tensor "b": data_offsets: it begins at 4 and overlaps "a", which ends at 8/,
  ],
  [
    "a gap between tensors",
    { header: { a: tensor(0, 4), b: tensor(8, 12) }, body: Buffer.alloc(12) },
    "model_invalid",
    /tensor "b": data_offsets: it begins at 8 and leaves a gap after "a"/,
  ],
  [
    "a tensor beyond the file",
    { header: { a: tensor(0, 8) }, body: Buffer.alloc(4) },
    "model_truncated",
    /ends early: tensor "a": data_offsets: it ends at 8, and 4 bytes follow the header/,
  ],
  [
    "bytes behind the last tensor",
    { header: { a: tensor(0, 4) }, body: Buffer.alloc(8) },
    "model_invalid",
    /4 bytes belong to no tensor/,
  ],
  [
    "a type that is not read",
    { header: { a: tensor(0, 8, { dtype: "I64", shape: [1] }) }, body: Buffer.alloc(8) },
    "model_unsupported",
    /tensor "a": dtype "I64" is not read; the known ones are F32, F16, BF16, F8_E4M3/,
  ],
  [
    "a field that is not known",
    { header: { a: tensor(0, 4, { scale: 1 }) }, body: Buffer.alloc(4) },
    "model_invalid",
    /tensor "a": .*scale/,
  ],
];

for (const [what, parts, code, message] of lies) {
  test(`${what} is refused`, async (t) => {
    const file = await writeFileOf(t, parts);
    assert.throws(() => readSafetensors(file), { code, message });
  });
}
