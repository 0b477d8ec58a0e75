import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { isGguf, readGguf } from "../../../src/engine/checkpoints/read-gguf.ts";
import { readLanguageModel } from "../../../src/engine/language/open-language-model.ts";

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function uint64(value: number | bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function text(value: string): Buffer {
  return Buffer.concat([uint64(Buffer.byteLength(value)), Buffer.from(value)]);
}

interface Tensor {
  readonly name: string;
  readonly dims?: readonly number[];
  readonly type?: number;
  readonly offset?: number;
}

interface Parts {
  readonly version?: number;
  readonly tensors?: readonly Tensor[];
  readonly tensorCount?: number | bigint;
  readonly entries?: readonly Buffer[];
  readonly body?: number;
}

/** A file whose tensors are behind its header, from a multiple of 32 on. */
function gguf({ version = 3, tensors = [], tensorCount, entries = [], body = 0 }: Parts): Buffer {
  const header = Buffer.concat([
    Buffer.from("GGUF"),
    uint32(version),
    uint64(tensorCount ?? tensors.length),
    uint64(entries.length),
    ...entries,
    ...tensors.flatMap(({ name, dims = [8], type = 0, offset = 0 }) => [
      text(name),
      uint32(dims.length),
      ...dims.map((length) => uint64(length)),
      uint32(type),
      uint64(offset),
    ]),
  ]);
  const padding = Buffer.alloc((32 - (header.length % 32)) % 32);
  return Buffer.concat([header, padding, Buffer.alloc(body)]);
}

async function store(t: TestContext, bytes: Uint8Array): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "gguf-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = path.join(folder, "model.gguf");
  await writeFile(file, bytes);
  return file;
}

const textEntry = (key: string, value: string) =>
  Buffer.concat([text(key), uint32(8), text(value)]);

const two = Buffer.alloc(2);
/** A list whose values have a byte. */
const listEntry = (key: string, type: number, values: Buffer) =>
  Buffer.concat([text(key), uint32(9), uint32(type), uint64(values.length), values]);

test("metadata and tensors are read, axes with the slowest first", async (t) => {
  const numbers = Buffer.concat([
    text("list"),
    uint32(9),
    uint32(4),
    uint64(2),
    uint32(5),
    uint32(6),
  ]);
  const bytes = gguf({
    entries: [textEntry("general.architecture", "llama"), numbers],
    tensors: [
      { name: "a", dims: [32, 3], type: 8 },
      { name: "b", offset: 128 },
    ],
    body: 160,
  });
  const file = await store(t, bytes);
  const start = bytes.length - 160;
  assert.equal(isGguf(file), true);
  assert.deepEqual(readGguf(file), {
    metadata: new Map<string, unknown>([
      ["general.architecture", "llama"],
      ["list", [5, 6]],
    ]),
    tensors: [
      { name: "a", path: file, offset: start, encoding: "Q8_0", dims: [3, 32] },
      { name: "b", path: file, offset: start + 128, encoding: "F32", dims: [8] },
    ],
  });
});

test("a header that ends anywhere is refused as one that ends early", async (t) => {
  const whole = gguf({ entries: [textEntry("key", "value")], tensors: [{ name: "a" }] });
  for (let length = 4; length < whole.length - 32; length += 7) {
    const file = await store(t, whole.subarray(0, length));
    assert.throws(() => readGguf(file), {
      code: "model_truncated",
      message: /^model\.gguf ends early/,
    });
  }
});

const lies: readonly [what: string, parts: Parts, code: string, message: RegExp][] = [
  ["another version", { version: 1 }, "model_unsupported", /version 1 of GGUF is not read/],
  [
    "a number of tensors beyond all models",
    { tensorCount: 2n ** 40n },
    "model_invalid",
    /it has 1099511627776 tensors, and may have 100000/,
  ],
  [
    "a list of more values than memory has room for",
    { entries: [listEntry("bytes", 0, Buffer.alloc(9_999_999)), listEntry("more", 0, two)] },
    "model_invalid",
    /it has more than 10000000 values in lists/,
  ],
  [
    "a type that is not read",
    { tensors: [{ name: "a", type: 16 }] },
    "model_unsupported",
    /tensor "a": type 16 is not read; the known ones are F32, F16, Q4_0/,
  ],
  [
    "rows that are no whole blocks",
    { tensors: [{ name: "a", dims: [40, 2], type: 8 }] },
    "model_invalid",
    /tensor "a": ne: \[2, 40\] has rows that are not whole blocks of 32/,
  ],
  [
    "an offset that is not aligned",
    { tensors: [{ name: "a", offset: 4 }], body: 64 },
    "model_invalid",
    /tensor "a": offset: 4 is not a multiple of 32/,
  ],
  [
    "tensors that overlap",
    {
      tensors: [
        { name: "a", dims: [16] },
        { name: "b", offset: 32 },
      ],
      body: 64,
    },
    "model_invalid",
    /tensor "b": offset: it begins at 32 and overlaps tensor "a", which ends at 64/,
  ],
  [
    "a tensor beyond the file",
    { tensors: [{ name: "a" }], body: 16 },
    "model_truncated",
    /ends early: tensor "a": offset: it ends at byte/,
  ],
  [
    "a tensor that is there twice",
    { tensors: [{ name: "a" }, { name: "a", offset: 32 }], body: 64 },
    "model_invalid",
    /tensor "a": it is there twice/,
  ],
  [
    "metadata that is there twice",
    { entries: [textEntry("key", "a"), textEntry("key", "b")] },
    "model_invalid",
    /metadata "key" is there twice/,
  ],
];

for (const [what, parts, code, message] of lies) {
  test(`${what} is refused`, async (t) => {
    const file = await store(t, gguf(parts));
    assert.throws(() => readGguf(file), { code, message });
  });
}

const float32 = 6;
const infinity = Buffer.from(Float32Array.of(Infinity).buffer);

for (const [key, type, value, code, message] of [
  [
    "rope.dimension_count",
    4,
    uint32(3),
    "model_unsupported",
    "model.gguf: llama.rope.dimension_count is 3, and may be a multiple of 16",
  ],
  [
    "rope.freq_base",
    float32,
    infinity,
    "model_invalid",
    'model.gguf: metadata "llama.rope.freq_base" is no finite number from 0 on',
  ],
] as const) {
  test(`a model whose ${key} cannot be is refused by its name`, async (t) => {
    const sizes = {
      block_count: 1,
      embedding_length: 32,
      "attention.head_count": 2,
      feed_forward_length: 32,
      context_length: 32,
      "attention.layer_norm_rms_epsilon": 1,
    };
    const entry = (name: string, kind: number, content: Buffer) =>
      Buffer.concat([text(`llama.${name}`), uint32(kind), content]);
    const file = await store(
      t,
      gguf({
        entries: [
          textEntry("general.architecture", "llama"),
          ...Object.entries(sizes).map(([name, size]) => entry(name, 4, uint32(size))),
          Buffer.concat([text("tokenizer.ggml.tokens"), uint32(9), uint32(8), uint64(0)]),
          entry(key, type, value),
        ],
      }),
    );
    assert.throws(() => readLanguageModel(file), { code, message });
  });
}
