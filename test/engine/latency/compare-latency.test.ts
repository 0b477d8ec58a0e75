import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { compareLatency } from "../../../src/engine/latency/compare-latency.ts";
import type { Sample } from "../../../src/engine/runtime/tensor-data.ts";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../../support/tiny-model.ts";

let folder = "";
before(async () => (folder = await mkdtemp(join(tmpdir(), "compare-latency-"))));
after(() => rm(folder, { recursive: true }));

type LatencyOptions = Parameters<typeof compareLatency>[0];

const size = 256;

/** y = x · w · w …, with as many products as given. */
async function productsModel(products: number): Promise<string> {
  const path = join(folder, `${products}.onnx`);
  await writeTinyModel(path, {
    input: [tensorInfo("x", ["rows", size])],
    output: [tensorInfo(`y${products}`, ["rows", size])].map((y) => ({ ...y, name: "y" })),
    initializer: [floatInitializer("w", [size, size], (index) => (index % 7) / 1000)],
    node: Array.from({ length: products }, (_, index) =>
      node(
        "MatMul",
        [index === 0 ? "x" : `y${index}`, "w"],
        [index === products - 1 ? "y" : `y${index + 1}`],
      ),
    ),
  });
  return path;
}

function makeSample(rows: number): Sample {
  return [
    { name: "x", type: "float32", shape: [rows, size], bytes: new Uint8Array(4 * rows * size) },
  ];
}

function compare(originalPath: string, resultPath: string, more: Partial<LatencyOptions> = {}) {
  return compareLatency({
    originalPath,
    resultPath,
    samples: [makeSample(16)],
    executionProvider: "cpu",
    threads: 1,
    budgetSeconds: 60,
    signal: new AbortController().signal,
    onProgress: () => undefined,
    ...more,
  });
}

test("compareLatency() finds a model of eight times the work slower, with an interval", async () => {
  const [one, eight] = [await productsModel(2), await productsModel(16)];
  const { latency } = await compare(one, eight, { isDecided: ({ low }) => low > 2 });
  const { ratio, ratioLow = 0, ratioHigh = 0, sessions = 0, original, result } = latency;
  assert.ok(ratioLow > 2 && ratio > ratioLow && ratioHigh > ratio, JSON.stringify(latency));
  assert.ok(sessions >= 4);
  assert.ok(original.runs >= 100 && original.p95Ms !== undefined);
  assert.ok(result.p50Ms > original.p50Ms);
});

test("compareLatency() measures two sessions of each whatever the budget, and warns", async () => {
  const path = await productsModel(2);
  const fractions: number[] = [];
  const { latency, warnings } = await compare(path, path, {
    budgetSeconds: 0.001,
    onProgress: (fraction) => fractions.push(fraction),
  });
  assert.equal(latency.sessions, 2);
  assert.deepEqual(fractions, [1, 1]);
  assert.deepEqual(
    warnings.map(({ code }) => code),
    ["latency_noisy"],
  );
  assert.ok((latency.ratioLow ?? 1) < 1 && (latency.ratioHigh ?? 1) > 1);
});

test("compareLatency() reports the latency of each input shape, and first that of the highest ratio", async () => {
  const [one, eight] = [await productsModel(2), await productsModel(16)];
  const samples = [makeSample(1), makeSample(64)];
  const { latency } = await compare(one, eight, { samples, budgetSeconds: 0.001 });
  assert.deepEqual(
    latency.shapes?.map(({ inputs }) => inputs),
    ["x: float32[1,256]", "x: float32[64,256]"],
  );
  const ratios = latency.shapes.map(({ ratio }) => ratio);
  assert.equal(latency.ratio, Math.max(...ratios));
});

test("compareLatency() says which model cannot be run", async () => {
  const path = await productsModel(2);
  const broken = join(folder, "broken.onnx");
  await writeFile(broken, "not a model");
  await assert.rejects(compare(path, broken), {
    code: "evaluation_failed",
    message: /^The result could not be run/,
  });
});

test(
  "compareLatency() ends its process when it is aborted",
  { skip: process.platform !== "linux" },
  async () => {
    const controller = new AbortController();
    const reason = new Error("Cancelled by the caller");
    const path = await productsModel(2);
    const onProgress = () => controller.abort(reason);
    await assert.rejects(compare(path, path, { signal: controller.signal, onProgress }), reason);
    assert.equal(await readFile(`/proc/self/task/${process.pid}/children`, "utf8"), "");
  },
);
