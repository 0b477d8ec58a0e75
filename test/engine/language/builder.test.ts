import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { z } from "zod";
import { languageFiles } from "../../../src/engine/language/language-files.ts";
import { modelTensors } from "../../../src/engine/onnx/model-traversal.ts";
import { type NodeProto, TensorProto_DataType } from "../../../src/engine/onnx/onnx_pb.js";
import { openModel } from "../../../src/engine/onnx/open-model.ts";
import { tensorSource } from "../../../src/engine/onnx/read-tensor.ts";
import { hashSource } from "../../../src/engine/onnx/hash-source.ts";
import { realModel, realModelMissing } from "../../support/real-models.ts";
import { compress, makeFolder } from "../quantize/compress.ts";

const recorded = z.object({ nodes: z.record(z.string(), z.string()), config: z.unknown() });
const skip = await realModelMissing("smollm2");

/** As record_builder.py describes a node. */
function describe(node: NodeProto, hashes: ReadonlyMap<string, string>): string {
  const attributes = node.attribute.map(({ name, type, f, i, ints }) => {
    const value = { 1: `${Math.round(f * 1e9)}e-9`, 2: i, 7: `[${ints.join(", ")}]` }[Number(type)];
    return `${name}=${value}`;
  });
  const weights = node.input.flatMap((name) => hashes.get(name) ?? []);
  return [node.opType, ...attributes.sort(), ...weights].join(" ");
}

/** Cosines and sines differ by a rounding: those of numpy are not the nearest float32 numbers. */
const rotaryHashes = /(?<=^GroupQueryAttention .*)( [0-9a-f]{64}){2}$/;
/** The nodes that look up embeddings in the head's own bytes have other names. */
const embedding = /^\/model\/embed_tokens\//;

function comparable(nodes: readonly (readonly [name: string, line: string])[]): object {
  const lines = nodes.map(([name, line]) => [name, line.replace(rotaryHashes, "")] as const);
  return Object.fromEntries(
    lines.filter(([name, line]) => !embedding.test(name) && !line.startsWith("Reshape")),
  );
}

test("the int4 folder of SmolLM2 is the builder's, weight by weight", { skip }, async () => {
  await using folder = await makeFolder();
  const recipe = { scheme: "int4-weight", operators: "contrib", blockSize: 32 } as const;
  await compress(realModel("smollm2"), folder.path, recipe);
  const model = await openModel(path.join(folder.path, "model.onnx"), 1e9);
  const { signal } = new AbortController();
  const hashes = new Map<string, string>();
  for (const tensor of modelTensors(model.proto)) {
    if (tensor.dataType === TensorProto_DataType.INT64) continue;
    hashes.set(tensor.name, await hashSource(tensorSource(model, tensor), signal));
  }
  const found = (model.proto.graph?.node ?? []).map(
    (node) => [node.name, describe(node, hashes)] as const,
  );
  const text = await readFile(new URL("builder.json", import.meta.url), "utf8");
  const { nodes, config } = recorded.parse(JSON.parse(text));
  assert.deepEqual(comparable(found), comparable(Object.entries(nodes)));
  const lookUp = (lines: readonly string[]) => lines.find((line) => line.startsWith("GatherBlock"));
  assert.equal(lookUp(found.map(([, line]) => line)), lookUp(Object.values(nodes)));
  const files = await languageFiles(realModel("smollm2"), "cpu");
  assert.deepEqual(
    JSON.parse(Buffer.from(files.get("genai_config.json") ?? "").toString()),
    config,
  );
});
