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
