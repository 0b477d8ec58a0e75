import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { isSameModel } from "../../src/contract/jobs/model-diff.ts";
import {
  type ModelDescription,
  modelDescription,
} from "../../src/contract/models/model-description.ts";
import { compareModels } from "../../src/engine/diff/compare-models.ts";
import { compareResult } from "../../src/engine/diff/compare-result.ts";
import { describeModel } from "../../src/engine/diff/describe-model.ts";
import {
  floatInitializer,
  integerAttribute,
  node,
  tensorInfo,
  writeTinyModel,
} from "../support/tiny-model.ts";

const size = 64;
const { signal } = new AbortController();
const weight = (seed: number) => (i: number) => Math.sin(i * 12.9898 + seed);

type Graph = Parameters<typeof writeTinyModel>[1];

/** Two products with an activation between them. */
function makeGraph(mark = "", content = weight(1)) {
  const names = (text: string) => `${text}${mark}`;
  const named = (name: string, op: string, inputs: string[], output: string) => ({
    ...node(op, inputs.map(names), [names(output)]),
    name: names(name),
  });
  return {
    input: [tensorInfo(names("x"), [1, size])],
    output: [tensorInfo(names("y"), [1, size])],
    initializer: [
      floatInitializer(names("w1"), [size, size], content),
      floatInitializer(names("w2"), [size, size], weight(2)),
    ],
    node: [
      named("first", "MatMul", ["x", "w1"], "a"),
      named("act", "Relu", ["a"], "b"),
      named("second", "MatMul", ["b", "w2"], "y"),
    ],
  };
}

async function describe(t: TestContext, graph: Graph, options = {}): Promise<ModelDescription> {
  const folder = await mkdtemp(join(tmpdir(), "diff-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "model.onnx");
  await writeTinyModel(file, graph, options);
  const described = await describeModel(file, 1e9, signal);
  return modelDescription.parse(JSON.parse(JSON.stringify(described)));
}

test("a model is the same as itself", async (t) => {
  const one = await describe(t, makeGraph());
  const diff = compareModels(one, await describe(t, makeGraph()));
  assert.ok(isSameModel(diff));
  assert.deepEqual([diff.nodes.same, diff.weights.same], [3, 2]);
});

test("a weight that was trained on is named, with how much it changed", async (t) => {
  const one = await describe(t, makeGraph());
  for (const share of [0.001, 0.03, 0.5]) {
    const noise = (i: number) => weight(1)(i) + share * weight(7)(i * 3);
    const diff = compareModels(one, await describe(t, makeGraph("", noise)));
    assert.deepEqual(diff.weights, { added: 0, removed: 0, changed: 1, renamed: 0, same: 1 });
    const [change] = diff.weightChanges;
    assert.equal(change?.name, "w1");
    const distance = change.distance ?? 0;
    assert.ok(distance > 0.6 * share && distance < 1.5 * share, `${distance} for ${share}`);
    assert.equal(diff.nodes.same, 3);
  }
});

test("a graph whose names all changed is the same graph with other names", async (t) => {
  const renamed = await describe(t, makeGraph("/renamed"));
  const diff = compareModels(await describe(t, makeGraph()), renamed);
  assert.deepEqual(diff.nodes, { added: 0, removed: 0, changed: 0, renamed: 3, same: 0 });
  assert.deepEqual(diff.weights, { added: 0, removed: 0, changed: 0, renamed: 2, same: 0 });
});

test("a graph that was renamed and trained on keeps its nodes", async (t) => {
  const renamed = await describe(t, makeGraph("/renamed", weight(5)));
  const diff = compareModels(await describe(t, makeGraph()), renamed);
  assert.deepEqual(diff.nodes, { added: 0, removed: 0, changed: 0, renamed: 3, same: 0 });
  assert.deepEqual(diff.weights, { added: 0, removed: 0, changed: 1, renamed: 1, same: 0 });
});

test("a node that was added is named with its neighbours", async (t) => {
  const graph = makeGraph();
  const [first, act, second] = graph.node;
  assert.ok(first && act && second);
  const added = { ...node("Tanh", ["b"], ["c"]), name: "extra" };
  const changed = { ...graph, node: [first, act, added, { ...second, input: ["c", "w2"] }] };
  const diff = compareModels(await describe(t, graph), await describe(t, changed));
  assert.deepEqual(diff.nodes, { added: 1, removed: 0, changed: 1, renamed: 0, same: 2 });
  assert.deepEqual(diff.nodeChanges, [
    { how: "added", name: "extra", op: "Tanh", what: [], from: ["act"], to: ["second"] },
    { how: "changed", name: "second", op: "MatMul", what: ["inputs"], from: ["extra"], to: [] },
  ]);
  const back = compareModels(await describe(t, changed), await describe(t, graph));
  assert.deepEqual([back.nodes.removed, back.nodes.changed], [1, 1]);
});

test("attributes, operators, shapes of weights, opset and interface are compared", async (t) => {
  const graph = makeGraph();
  const softmax = (axis: number) => {
    const act = { ...node("Softmax", ["a"], ["b"], [integerAttribute("axis", axis)]), name: "act" };
    return { ...graph, node: [graph.node[0] ?? {}, act, graph.node[2] ?? {}] };
  };
  const attributes = compareModels(await describe(t, softmax(0)), await describe(t, softmax(1)));
  assert.deepEqual(
    attributes.nodeChanges.map(({ name, what }) => [name, what]),
    [["act", ["attributes"]]],
  );
  const wider = {
    ...graph,
    input: [tensorInfo("x", ["batch", size])],
    initializer: [graph.initializer[0] ?? {}, floatInitializer("w2", [size, 8], weight(2))],
  };
  const diff = compareModels(
    await describe(t, graph, { opset: 17 }),
    await describe(t, wider, { opset: 18 }),
  );
  assert.deepEqual(diff.values, [
    { what: "opset", name: "ai.onnx", before: "17", after: "18" },
    { what: "input", name: "x", before: "float32[1,64]", after: "float32[batch,64]" },
  ]);
  assert.deepEqual(diff.weightChanges, [
    {
      how: "changed",
      name: "w2",
      before: "float32[64,64]",
      after: "float32[64,8]",
      distance: null,
    },
  ]);
});

test("graphs of 10,000 nodes with other names and one more node are compared in a second", () => {
  const describeChain = (mark: string, extra: number): ModelDescription => ({
    opsets: {},
    inputs: [],
    outputs: [],
    weights: [],
    nodes: Array.from({ length: 10_000 + extra }, (_, i) => ({
      name: `${mark}${i}`,
      op: ["Add", "Mul", "Relu"][i % 3] ?? "",
      attributes: "",
      inputs: [`${mark}v${i}`],
      outputs: [`${mark}v${i + 1}`],
    })),
  });
  const before = process.threadCpuUsage();
  const same = compareModels(describeChain("a", 0), describeChain("a", 1));
  assert.deepEqual([same.nodes.added, same.nodes.changed], [1, 0]);
  compareModels(describeChain("a", 0), describeChain("b", 1));
  const seconds = process.threadCpuUsage(before).user / 1e6;
  assert.ok(seconds < 5, `took ${seconds.toFixed(1)} s`);
});

test("a result has its original's nodes, with what restores the weights that changed", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "result-"));
  t.after(() => rm(folder, { recursive: true }));
  const [originalPath, resultPath] = [join(folder, "a.onnx"), join(folder, "b.onnx")];
  const graph = makeGraph();
  await writeTinyModel(originalPath, graph);
  const restore = { ...node("DequantizeLinear", ["w1", "scale"], ["restored"]), name: "restore" };
  const [first, ...others] = graph.node;
  const taken = { ...first, input: ["x", "restored"] };
  await writeTinyModel(resultPath, { ...graph, node: [restore, taken, ...others] });
  const weightOf = (name: string, form: string | null, sqnrDb: number) => ({
    name,
    shape: [size, size],
    dataType: "float32",
    originalBytes: 4 * size * size,
    resultBytes: size * size,
    usedBy: ["MatMul"],
    form,
    reason: null,
    error: form === null ? null : { sqnrDb, cosine: 1, maxAbsoluteError: 0 },
  });
  const weights = [weightOf("w1", "int8", 20), weightOf("w2", null, 0)];
  const files = { originalPath, resultPath, provider: "cpu" } as const;
  const paths = { ...files, weights, maxModelBytes: 1e9, signal };
  const { changes: diff, graph: shown } = await compareResult(paths);
  assert.deepEqual(
    shown?.nodes.map(({ name }) => name),
    ["restore", "first", ...others.map(({ name }) => name)],
  );
  assert.deepEqual(diff.nodes, { added: 1, removed: 0, changed: 1, renamed: 0, same: 2 });
  assert.deepEqual(
    diff.nodeChanges.map(({ name, how }) => [name, how]),
    [
      ["restore", "added"],
      ["first", "changed"],
    ],
  );
  assert.deepEqual(diff.weights, { added: 0, removed: 0, changed: 1, renamed: 0, same: 1 });
  assert.deepEqual(diff.weightChanges, [
    { how: "changed", name: "w1", before: "float32[64,64]", after: "int8", distance: 0.1 },
  ]);
  const multiplied = { ...weightOf("w2", "float32, multiplied", 0), error: null };
  const { changes } = await compareResult({ ...paths, weights: [multiplied, ...weights] });
  assert.deepEqual(
    changes.weightChanges.map(({ name, distance }) => [name, distance]),
    [
      ["w1", 0.1],
      ["w2", null],
    ],
    "what is rounded comes first",
  );
});
