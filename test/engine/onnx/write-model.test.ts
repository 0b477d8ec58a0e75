import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { layoutModel } from "../../../src/engine/onnx/layout-model.ts";
import { openModel } from "../../../src/engine/onnx/open-model.ts";
import { writeLayout, writeModel } from "../../../src/engine/onnx/write-model.ts";
import { modelTensors } from "../../../src/engine/onnx/model-traversal.ts";
import { tensorSource } from "../../../src/engine/onnx/read-tensor.ts";
import { realModel, realModelMissing } from "../../support/real-models.ts";
import type { RealModelName } from "../../support/real-models.ts";

const maxBytes = 2 ** 40;
let folder = "";
before(async () => (folder = await mkdtemp(join(tmpdir(), "write-model-"))));
after(() => rm(folder, { recursive: true }));

const models: readonly RealModelName[] = [
  "ocr-recognition",
  "voice-v5",
  "voice-legacy",
  "ocr-detection-v6",
  "minilm",
];
for (const name of models) {
  test(
    `${name} is byte for byte the same after reading and writing`,
    { skip: await realModelMissing(name) },
    async () => {
      const model = await openModel(realModel(name), maxBytes);
      const [written] = await writeModel(model, { directory: folder, name });
      assert.equal(written?.name, `${name}.onnx`);
      assert.ok(
        (await readFile(join(folder, `${name}.onnx`))).equals(await readFile(realModel(name))),
      );
    },
  );
}

test("a model in three shards holds the same tensors, aligned, with an index", async () => {
  const model = await openModel(realModel("voice-legacy"), maxBytes);
  const layout = layoutModel(model, {
    name: "sharded",
    shards: 3,
    assignShard: (payload) => payload % 3,
  });
  const files = await writeLayout(model, { directory: folder, layout });
  assert.deepEqual(
    files.map(({ name }) => name),
    [
      "sharded.onnx",
      "sharded-00001-of-00003.bin",
      "sharded-00002-of-00003.bin",
      "sharded-00003-of-00003.bin",
      "sharded.index.json",
    ],
  );
  const sharded = await openModel(join(folder, "sharded.onnx"), maxBytes);
  const contents = (of: typeof model) =>
    [...modelTensors(of.proto)].map((tensor) => {
      const source = tensorSource(of, tensor);
      if (source.kind === "memory") return source.bytes;
      assert.equal(source.kind, "file");
      return readFileSync(source.path).subarray(source.offset, source.offset + source.length);
    });
  assert.deepEqual(contents(sharded), contents(model));
  assert.ok(
    sharded.payloads.every((payload) => payload.kind === "file" && payload.offset % 4096 === 0),
  );
  const index = JSON.parse(await readFile(join(folder, "sharded.index.json"), "utf8"));
  assert.equal(Object.keys(index.weight_map).length, sharded.payloads.length);
});

test("a write that is stopped leaves nothing behind", async () => {
  const model = await openModel(realModel("ocr-recognition"), maxBytes);
  const directory = await mkdtemp(join(folder, "stopped-"));
  const controller = new AbortController();
  const layout = layoutModel(model, { name: "stopped", shards: 1, assignShard: () => 0 });
  const writing = writeLayout(model, {
    directory,
    layout,
    signal: controller.signal,
    onBytes: () => controller.abort(new Error("stopped")),
  });
  await assert.rejects(writing, /stopped/);
  assert.deepEqual(await readdir(directory), []);
});
