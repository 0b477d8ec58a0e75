import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  countNodesOnCpu,
  describeNodesOnCpu,
} from "../../../src/engine/evaluate/count-nodes-on-cpu.ts";
import { ModelSession } from "../../../src/engine/runtime/model-session.ts";
import type { TensorData } from "../../../src/engine/runtime/tensor-data.ts";
import { TensorProto_DataType } from "../../../src/engine/onnx/onnx_pb.js";
import { integerAttribute, node, tensorInfo, writeTinyModel } from "../../support/tiny-model.ts";

test("countNodesOnCpu() reads from the runtime's profile where nodes ran, but for shapes", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "nodes-"));
  t.after(async () => rm(folder, { recursive: true }));
  const path = join(folder, "model.onnx");
  await writeTinyModel(path, {
    input: [tensorInfo("x", [1024]), tensorInfo("shape", [2], TensorProto_DataType.INT64)],
    output: [tensorInfo("y", [1024]), tensorInfo("product", [], TensorProto_DataType.INT64)],
    node: [
      node("Erf", ["x"], ["a"]),
      node("Sin", ["a"], ["b"]),
      node("Erf", ["b"], ["y"]),
      node("ReduceProd", ["shape"], ["product"], [integerAttribute("keepdims", 0)]),
    ],
  });
  await using session = await ModelSession.open(path, {
    executionProvider: "cpu",
    threads: 1,
    profilePrefix: join(folder, "profile"),
    signal: new AbortController().signal,
  });
  const inputs: TensorData[] = [
    { name: "x", type: "float32", shape: [1024], bytes: new Uint8Array(4096) },
    { name: "shape", type: "int64", shape: [2], bytes: new Uint8Array(16) },
  ];
  for (let run = 0; run < 2; run++) await session.run(inputs, ["y", "product"]);
  await session.endProfile();
  const placement = await countNodesOnCpu(folder);
  assert.deepEqual(placement, { nodes: 3, nodesOnCpu: 3, operatorsOnCpu: ["Erf", "Sin"] });
  assert.deepEqual(describeNodesOnCpu("result", placement), [
    { code: "nodes_on_cpu", message: "3 of 3 nodes of the result ran on the CPU: Erf, Sin" },
  ]);
  assert.deepEqual(describeNodesOnCpu("result", { ...placement, nodesOnCpu: 0 }), []);
});
