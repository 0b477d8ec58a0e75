import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { inlineFunctions } from "../../../src/engine/onnx/inline-functions.ts";
import {
  FunctionProtoSchema,
  GraphProtoSchema,
  ModelProtoSchema,
  NodeProtoSchema,
} from "../../../src/engine/onnx/onnx_pb.js";

test("inlineFunctions() takes the domains ai.onnx and the empty one for the same", () => {
  const call = create(NodeProtoSchema, { opType: "Twice", input: ["x"], output: ["y"] });
  const add = create(NodeProtoSchema, { opType: "Add", input: ["a", "a"], output: ["b"] });
  const body = create(FunctionProtoSchema, {
    name: "Twice",
    domain: "ai.onnx",
    input: ["a"],
    output: ["b"],
    node: [add],
  });
  const model = create(ModelProtoSchema, {
    graph: create(GraphProtoSchema, { node: [call] }),
    functions: [body],
  });
  inlineFunctions(model);
  assert.deepEqual(
    model.graph?.node.map(({ opType, input, output }) => ({ opType, input, output })),
    [{ opType: "Add", input: ["x", "x"], output: ["y"] }],
  );
  assert.deepEqual(model.functions, []);
});

/** A model that calls two functions, each of which imports a version of the standard operators. */
function callTwo(imports: readonly Import[], first: Import, second: Import) {
  const functions = [first, second].map((entry, index) => ({
    name: `F${index}`,
    domain: "local",
    input: ["a"],
    output: ["b"],
    node: [{ opType: "Softmax", input: ["a"], output: ["b"] }],
    opsetImport: [entry],
  }));
  const node = functions.map(({ name: opType, domain }, index) => {
    return { opType, domain, input: ["x"], output: [`y${index}`] };
  });
  const opsetImport = [{ domain: "local", version: 1n }, ...imports];
  const model = create(ModelProtoSchema, { graph: { node }, functions, opsetImport });
  inlineFunctions(model);
  return {
    operators: model.graph?.node.map(({ opType }) => opType),
    functions: model.functions.length,
    imports: model.opsetImport.map(({ domain, version }) => `${domain} ${version}`),
  };
}

interface Import {
  readonly domain: string;
  readonly version: bigint;
}

test("functions with another version of the operators stay, by either name of the domain", () => {
  assert.deepEqual(
    callTwo(
      [{ domain: "", version: 17n }],
      { domain: "ai.onnx", version: 11n },
      { domain: "ai.onnx", version: 17n },
    ),
    { operators: ["F0", "Softmax"], functions: 2, imports: ["local 1", " 17"] },
  );
});

test("functions that import different versions are not all inlined", () => {
  assert.deepEqual(callTwo([], { domain: "", version: 11n }, { domain: "", version: 17n }), {
    operators: ["Softmax", "F1"],
    functions: 2,
    imports: ["local 1", " 11"],
  });
});
