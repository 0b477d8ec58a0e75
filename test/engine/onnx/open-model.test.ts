import assert from "node:assert/strict";
import { link, mkdir, mkdtemp, readFile, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { ErrorCode } from "../../../src/contract/errors.ts";
import {
  ModelProtoSchema,
  TensorProto_DataLocation,
  TensorProto_DataType,
} from "../../../src/engine/onnx/onnx_pb.js";
import { openModel } from "../../../src/engine/onnx/open-model.ts";
import { findPayload } from "../../../src/engine/onnx/payload.ts";
import { readTensor } from "../../../src/engine/onnx/read-tensor.ts";
import { realModel } from "../../support/real-models.ts";
import { node, tensorInfo, floatInitializer, writeTinyModel } from "../../support/tiny-model.ts";

const maxBytes = 2 ** 40;
let folder = "";
before(async () => (folder = await mkdtemp(join(tmpdir(), "open-model-"))));
after(() => rm(folder, { recursive: true }));

const io = { input: [tensorInfo("x", [1, 4])], output: [tensorInfo("y", [1, 4])] };
const product = [node("MatMul", ["x", "w"], ["y"])];
const square = floatInitializer("w", [4, 4], (index) => index);

async function refuses(path: string, code: ErrorCode, message?: RegExp): Promise<void> {
  await assert.rejects(openModel(path, maxBytes), (error: Error & { code: string }) => {
    assert.equal(error.code, code, error.message);
    if (message !== undefined) assert.match(error.message, message);
    return true;
  });
}

test("openModel() leaves large weights in the file and reads them by range", async () => {
  const path = join(folder, "large.onnx");
  await writeTinyModel(path, {
    ...io,
    initializer: [floatInitializer("w", [4, 1024], (index) => index)],
    node: product,
  });
  const model = await openModel(path, maxBytes);
  const [tensor] = model.proto.graph?.initializer ?? [];
  assert.ok(tensor);
  assert.equal(tensor.rawData.length, 0);
  assert.equal(findPayload(model, tensor)?.length, 16_384);
  assert.deepEqual(
    new Float32Array(readTensor(model, tensor).buffer, 40, 3),
    Float32Array.of(10, 11, 12),
  );
});

test("readTensor() gives raw bytes for every way a tensor can hold its content", async () => {
  const path = join(folder, "typed.onnx");
  const halves = Uint16Array.from({ length: 3000 }, (_, index) => index * 20);
  const dims = [3000n];
  const typed = [
    { name: "short", dims: [2n], dataType: TensorProto_DataType.FLOAT, floatData: [1.5, -2] },
    { name: "halves", dims, dataType: TensorProto_DataType.FLOAT16, int32Data: [...halves] },
    {
      name: "negative",
      dims,
      dataType: TensorProto_DataType.INT64,
      int64Data: [...halves].map((half) => -BigInt(half)),
    },
    { name: "floats", dims, dataType: TensorProto_DataType.FLOAT, floatData: [...halves] },
  ];
  await writeTinyModel(path, { ...io, initializer: [square, ...typed], node: product });
  const model = await openModel(path, maxBytes);
  const read =
    model.proto.graph?.initializer.slice(1).map((tensor) => readTensor(model, tensor).buffer) ?? [];
  const [short, half, negative, floats] = read;
  assert.deepEqual(new Float32Array(short ?? new ArrayBuffer()), Float32Array.of(1.5, -2));
  assert.deepEqual(new Uint16Array(half ?? new ArrayBuffer()), halves);
  assert.equal(new BigInt64Array(negative ?? new ArrayBuffer())[7], -140n);
  assert.equal(new Float32Array(floats ?? new ArrayBuffer())[7], 140);
});

test("openModel() refuses a file that is not a model, and one that ends early", async () => {
  const text = join(folder, "text.onnx");
  await writeFile(text, "<!doctype html><title>404</title>".repeat(100));
  await refuses(text, "model_invalid", /it is a web page/);
  const oid = "oid sha256:61ea11ec29e493719a67ef067e868b924f86904637144b687068b398a8077cd6";
  await writeFile(text, `version https://git-lfs.github.com/spec/v1\n${oid}\nsize 579213\n`);
  await refuses(text, "model_invalid", /pointer of Git LFS; set lfs: true for/);
  await writeFile(text, Buffer.from("PK\x03\x04archive/data.pkl"));
  await refuses(text, "model_invalid", /ZIP archive, as PyTorch saves/);
  await writeFile(text, "# A model");
  await refuses(text, "model_invalid");
  const empty = join(folder, "empty.onnx");
  await writeFile(empty, "");
  await refuses(empty, "model_invalid", /empty/);
  const cut = join(folder, "cut.onnx");
  await writeFile(cut, await readFile(realModel("ocr-orientation")));
  await truncate(cut, 300_000);
  await refuses(cut, "model_truncated");
});

test("openModel() refuses a model above the size limit before reading it", async () => {
  const path = realModel("ocr-orientation");
  await assert.rejects(openModel(path, 1000), { code: "model_too_large" });
});

test("openModel() refuses opsets that are too old or not known and says how to convert", async () => {
  for (const opset of [6, 99]) {
    const path = join(folder, `opset-${opset}.onnx`);
    await writeTinyModel(path, { ...io, initializer: [square], node: product }, { opset });
    await refuses(path, "model_opset_unsupported", /7 to 28 are supported; convert it/);
  }
});

test("openModel() refuses graphs that no runtime could run", async () => {
  const path = join(folder, "broken.onnx");
  await writeTinyModel(path, { ...io, initializer: [square, square], node: product });
  await refuses(path, "model_invalid", /"w" is defined twice/);
  await writeTinyModel(path, {
    ...io,
    initializer: [{ ...square, dims: [5n, 4n] }],
    node: product,
  });
  await refuses(path, "model_invalid", /holds 64 bytes, and float32\[5, 4\] needs 80/);
  const cycle = [
    node("Add", ["x", "b"], ["a"]),
    node("Relu", ["a"], ["b"]),
    node("Relu", ["b"], ["y"]),
  ];
  await writeTinyModel(path, { ...io, node: cycle });
  await refuses(path, "model_invalid", /cycle/);
  await writeTinyModel(path, {
    ...io,
    initializer: [{ ...square, dims: [-1n, 4n] }],
    node: product,
  });
  await refuses(path, "model_invalid", /no valid shape/);
});

test("openModel() opens a chain of 50,000 nodes in reverse order", async () => {
  const path = join(folder, "chain.onnx");
  const chain = Array.from({ length: 50_000 }, (_, index) =>
    node("Relu", [index === 0 ? "x" : `v${index}`], [index === 49_999 ? "y" : `v${index + 1}`]),
  );
  await writeTinyModel(path, { ...io, node: chain.toReversed() });
  const model = await openModel(path, maxBytes);
  assert.equal(model.proto.graph?.node.length, 50_000);
});

async function writeExternal(location: string, offset = "0"): Promise<string> {
  const path = join(folder, "model", "external.onnx");
  const tensor = {
    name: "w",
    dims: [4n, 4n],
    dataType: TensorProto_DataType.FLOAT,
    dataLocation: TensorProto_DataLocation.EXTERNAL,
    externalData: [
      { key: "location", value: location },
      { key: "offset", value: offset },
    ],
  };
  await mkdir(join(folder, "model"), { recursive: true });
  await writeTinyModel(path, { ...io, initializer: [tensor], node: product });
  return path;
}

test("openModel() reads external data within the model's folder", async () => {
  const path = await writeExternal("parts/w.bin", "4");
  await mkdir(join(folder, "model", "parts"));
  await writeFile(join(folder, "model", "parts", "w.bin"), new Uint8Array(68).fill(7));
  const model = await openModel(path, maxBytes);
  const [tensor] = model.proto.graph?.initializer ?? [];
  assert.ok(tensor);
  assert.deepEqual(readTensor(model, tensor), new Uint8Array(64).fill(7));
  await refuses(
    await writeExternal("parts/w.bin", "8"),
    "external_data_short",
    /68 bytes.*needs 72/,
  );
});

test("openModel() refuses external data that is missing or lies elsewhere", async () => {
  await writeFile(join(folder, "outside.bin"), new Uint8Array(64));
  await refuses(await writeExternal("missing.bin"), "external_data_missing");
  await refuses(await writeExternal("../outside.bin"), "external_data_refused");
  await refuses(await writeExternal(join(folder, "outside.bin")), "external_data_refused");
  await refuses(await writeExternal("C:\\outside.bin"), "external_data_refused");
  await refuses(await writeExternal(""), "external_data_refused");
  await refuses(
    await writeExternal("parts\\w.bin"),
    "external_data_refused",
    /only "\/" is allowed/,
  );
  await refuses(await writeExternal("parts/"), "external_data_refused", /not the path of a file/);
  await refuses(await writeExternal("w\u202e.bin"), "external_data_refused", /hidden characters/);
  await refuses(await writeExternal("\0payload"), "model_invalid");
  await symlink(join(folder, "outside.bin"), join(folder, "model", "symbolic.bin"));
  await refuses(await writeExternal("symbolic.bin"), "external_data_refused", /leads out/);
  await link(join(folder, "outside.bin"), join(folder, "model", "hard.bin"));
  await refuses(await writeExternal("hard.bin"), "external_data_refused", /hard link/);
  await refuses(await writeExternal("w.bin", "-1"), "external_data_missing");
});

test("openModel() ends with an error or a model, whatever bytes of a real model are changed", async () => {
  const original = await readFile(realModel("voice-legacy"));
  const path = join(folder, "mutated.onnx");
  let state = 12_345;
  const random = (below: number) => (state = (state * 1_103_515_245 + 12_345) % 2 ** 31) % below;
  for (let round = 0; round < 60; round++) {
    const mutated = Uint8Array.from(original);
    for (let change = 0; change < 8; change++) mutated[random(20_000)] = random(256);
    await writeFile(path, mutated);
    try {
      await openModel(path, maxBytes);
    } catch (error) {
      assert.match(
        String(error instanceof Error && "code" in error && error.code),
        /^(model|external)_/,
        String(error),
      );
    }
  }
});

test("a model written by the bindings is the same after it was opened", async () => {
  const path = join(folder, "same.onnx");
  await writeTinyModel(path, { ...io, initializer: [square], node: product });
  const model = await openModel(path, maxBytes);
  const expected = fromBinary(ModelProtoSchema, await readFile(path));
  assert.deepEqual(
    toBinary(ModelProtoSchema, create(ModelProtoSchema, model.proto)),
    toBinary(ModelProtoSchema, expected),
  );
});

test("openModel() refuses a field that is encoded as another type", async () => {
  const path = join(folder, "mistyped.onnx");
  await writeTinyModel(path, { ...io, initializer: [square], node: product });
  const bytes = await readFile(path);
  // The type of the tensor's elements: a varint, here with the tag of four bytes.
  const at = bytes.indexOf(Uint8Array.of(0x10, TensorProto_DataType.FLOAT, 0x42, 1, 0x77));
  assert.ok(at > 0);
  bytes[at] = 0x15;
  await writeFile(path, bytes);
  await refuses(path, "model_invalid", /Field 2 of onnx.TensorProto at byte \d+ has wire type 5/);
});

test("openModel() refuses a tensor with content and external data", async () => {
  const path = join(folder, "twice.onnx");
  await writeFile(join(folder, "twice.bin"), new Uint8Array(64));
  const external = {
    name: "w",
    dims: [4n, 4n],
    dataType: TensorProto_DataType.FLOAT,
    dataLocation: TensorProto_DataLocation.EXTERNAL,
    externalData: [{ key: "location", value: "twice.bin" }],
    rawData: Uint8Array.of(1),
  };
  await writeTinyModel(path, { ...io, initializer: [external], node: product });
  await refuses(path, "model_invalid", /Tensor "w" has both content and external data/);
});
