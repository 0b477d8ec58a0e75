import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { graphLimits } from "../../src/contract/models/graph-limits.ts";
import { limits } from "../../src/contract/limits.ts";
import { listExternalData } from "../../src/model-files/list-external-data.ts";
import { externalTensor } from "../support/external-model.ts";
import { writeTinyModel } from "../support/tiny-model.ts";

/** Writes a model whose graph is a field again and again. */
async function writeRepeated(t: TestContext, field: readonly number[], times: number) {
  const folder = await mkdtemp(path.join(tmpdir(), "repeated-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = path.join(folder, "model.onnx");
  const graph = Buffer.alloc(field.length * times, Buffer.from(field));
  await writeFile(file, Buffer.concat([Buffer.from([0x3a, ...varint(graph.length)]), graph]));
  return file;
}

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) | 128, ...varint(Math.floor(value / 128))];
}

const tensor = [0x2a, 0x02, 0x70, 0x00];
const name = [0x12, 0x00];

/** Bytes that this process has read of files so far. */
async function countReadBytes(): Promise<number> {
  const [, bytes] = /^rchar: (\d+)$/m.exec(await readFile("/proc/self/io", "utf8")) ?? [];
  return Number(bytes);
}

test("listExternalData() reads a file of many small tensors once", async (t) => {
  const file = await writeRepeated(t, tensor, graphLimits.parts);
  const before = await countReadBytes();
  assert.deepEqual(listExternalData(file), []);
  assert.ok((await countReadBytes()) - before < 2 * (await stat(file)).size);
});

for (const [field, times, message] of [
  [tensor, graphLimits.parts + 1, /has more than 100000 nodes and tensors/],
  [name, graphLimits.fields, /has more than 3000000 fields/],
] as const) {
  test(`listExternalData() refuses a graph that ${message.source}`, async (t) => {
    const file = await writeRepeated(t, field, times);
    assert.throws(() => listExternalData(file), { code: "model_unsupported", message });
  });
}

test("listExternalData() refuses a model with more files than a manifest can name", async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), "many-files-"));
  t.after(() => rm(folder, { recursive: true }));
  const write = async (count: number) => {
    const file = path.join(folder, `${count}.onnx`);
    const names = Array.from({ length: count }, (_, i) => `w${i}`);
    await writeTinyModel(file, { initializer: names.map((each) => externalTensor(each, each, 1)) });
    return file;
  };
  const allowed = limits.manifestFiles - 1;
  assert.equal(listExternalData(await write(allowed)).length, allowed);
  const beyond = await write(allowed + 1);
  assert.throws(() => listExternalData(beyond), { code: "external_data_refused" });
});

test("listExternalData() finds nothing in a file that is not an ONNX model", async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), "no-model-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = path.join(folder, "model.onnx");
  await writeTinyModel(file, { initializer: [externalTensor("w", "w.data", 4)] });
  assert.deepEqual(listExternalData(file), ["w.data"]);
  const model = await readFile(file);
  const bad = [Buffer.from("text"), Buffer.alloc(0), model.subarray(0, -1), [...model, 0, 0]];
  for (const bytes of bad) {
    await writeFile(file, Buffer.from(bytes));
    assert.deepEqual(listExternalData(file), []);
  }
});
