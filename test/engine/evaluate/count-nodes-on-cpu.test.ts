import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  countNodesOnCpu,
  describeNodesOnCpu,
} from "../../../src/engine/evaluate/count-nodes-on-cpu.ts";
import { ModelSession } from "../../../src/engine/evaluate/model-session.ts";
import { node, tensorInfo, writeTinyModel } from "../../support/tiny-model.ts";

test("countNodesOnCpu() reads from the runtime's profile where nodes ran", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "nodes-"));
  t.after(async () => rm(folder, { recursive: true }));
  const path = join(folder, "model.onnx");
  await writeTinyModel(path, {
    input: [tensorInfo("x", [2])],
    output: [tensorInfo("y", [2])],
    node: [node("Erf", ["x"], ["a"]), node("Sin", ["a"], ["b"]), node("Erf", ["b"], ["y"])],
  });
  await using session = await ModelSession.open(path, {
    executionProvider: "cpu",
    threads: 1,
    profilePrefix: join(folder, "profile"),
    signal: new AbortController().signal,
  });
  const x = { name: "x", type: "float32" as const, shape: [2], bytes: new Uint8Array(8) };
  for (let run = 0; run < 2; run++) await session.run([x], ["y"]);
  await session.endProfile();
  const placement = await countNodesOnCpu(folder);
  assert.deepEqual(placement, { nodes: 3, nodesOnCpu: 3, operatorsOnCpu: ["Erf", "Sin"] });
  assert.deepEqual(describeNodesOnCpu("result", placement), [
    { code: "nodes_on_cpu", message: "3 of 3 nodes of the result ran on the CPU: Erf, Sin" },
  ]);
  assert.deepEqual(describeNodesOnCpu("result", { ...placement, nodesOnCpu: 0 }), []);
});
