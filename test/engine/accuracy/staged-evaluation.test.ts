import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { evaluateModels } from "../../../src/engine/evaluate-models.ts";
import { writeFloatsNpz } from "../../support/npz.ts";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../../support/tiny-model.ts";

type EvaluateOptions = Parameters<typeof evaluateModels>[0];
type Figures = Parameters<EvaluateOptions["onMeasured"]>[0];

const width = 256;
const layers = 6;
const weightBytes = 4 * width * width;

let folder = "";
let scratch = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "staged-"));
  scratch = join(folder, "scratch");
  await mkdir(scratch);
});
after(() => rm(folder, { recursive: true }));

/** Memory in which a session may have so many weights of the models in this file. */
function memoryForWeights(weights: number): number {
  return Math.ceil((128 * 1024 ** 2 + 2 * (weights + 0.5) * weightBytes) / 0.75);
}

/**
 * A chain of products, each added to the one before, so that values cross several cuts; one output
 * is computed on the way and the input is an output too. Weights differ by `change`.
 */
async function writeChain(name: string, change: number): Promise<string> {
  const path = join(folder, `${name}.onnx`);
  const weights = Array.from({ length: layers }, (_, layer) =>
    floatInitializer(`w${layer}`, [width, width], (index) => {
      const value = Math.sin(index * (layer + 1) * 0.7) / 16;
      return value * (1 + change * Math.cos(index * 0.3));
    }),
  );
  const nodes = weights.flatMap((_, layer) => [
    node("MatMul", [`sum${layer}`, `w${layer}`], [`product${layer}`]),
    node("Relu", [`product${layer}`], [`relu${layer}`]),
    node("Add", [`relu${layer}`, `sum${Math.max(0, layer - 2)}`], [`sum${layer + 1}`]),
  ]);
  await writeTinyModel(path, {
    input: [tensorInfo("sum0", ["n", width])],
    output: [`sum${layers}`, "relu1", "relu4"].map((output) => tensorInfo(output, ["n", width])),
    initializer: weights,
    node: nodes,
  });
  return path;
}

async function measure(options: Partial<EvaluateOptions>): Promise<Figures> {
  const figures: Figures[] = [];
  await evaluateModels({
    originalPath: await writeChain("original", 0),
    resultPath: await writeChain("result", 0.01),
    evaluation: { samples: 3, latencyBudgetSeconds: 0.1, minCosine: 0.9 },
    executionProvider: "cpu",
    threads: 1,
    scratchDirectory: scratch,
    signal: new AbortController().signal,
    onProgress: () => undefined,
    onMeasured: (measured) => figures.push(measured),
    log: () => undefined,
    ...options,
  });
  return figures.reduce((merged, measured) => {
    return {
      ...merged,
      ...measured,
      warnings: [...(merged.warnings ?? []), ...(measured.warnings ?? [])],
    };
  }, {});
}

function roundedAccuracy({ accuracy }: Figures) {
  assert(accuracy);
  const { outputs, sqnrDb, cosine, ...rest } = accuracy;
  return {
    ...rest,
    sqnrDb: sqnrDb.toFixed(2),
    cosine: cosine.toFixed(6),
    outputs: outputs.map((output) => [
      output.name,
      output.sqnrDb.toFixed(2),
      output.cosine.toFixed(6),
      output.top1Agreement,
    ]),
  };
}

test("models that do not fit into memory have the accuracy that they have as a whole", async () => {
  const values = Array.from({ length: 3 * width }, (_, index) => Math.cos(index));
  const dataPath = await writeFloatsNpz(folder, "sum0", { shape: [3, 1, width], values });
  for (const options of [{}, { dataPath }]) {
    const whole = await measure(options);
    const lines: string[] = [];
    const availableBytes = memoryForWeights(2);
    const log = (line: string) => lines.push(line);
    const progress: [fraction: number, message: string][] = [];
    const onProgress = (...reached: [number, string]) => progress.push(reached);
    const staged = await measure({ ...options, availableBytes, log, onProgress });
    assert.deepEqual(
      progress.map(([fraction]) => fraction),
      progress.map(([fraction]) => fraction).toSorted((a, b) => a - b),
    );
    assert.deepEqual(
      [...new Set(progress.map(([, message]) => message))],
      ["Running the original", "Comparing the result", "Evaluated"],
    );
    assert.deepEqual(roundedAccuracy(staged), roundedAccuracy(whole));
    assert.deepEqual(
      lines.filter((line) => line.includes("stages")),
      ["original", "result"].map(
        (which) => `The ${which} does not fit into memory and is run in 3 stages`,
      ),
    );
    assert(whole.latency && whole.memory?.originalPeakBytes && whole.memory.resultPeakBytes);
    const knownBytes = Object.values(staged.memory ?? {}).filter((bytes) => bytes !== undefined);
    assert.deepEqual([staged.latency, knownBytes], [undefined, []]);
    assert.deepEqual(
      staged.warnings?.map(({ code }) => code),
      ["latency_not_timed"],
    );
    assert.deepEqual(await readdir(scratch), []);
  }
});

test("models that fit into memory one at a time are not timed beside each other", async () => {
  const { latency, memory, warnings } = await measure({ availableBytes: memoryForWeights(layers) });
  assert.equal(latency, undefined);
  assert(memory?.originalPeakBytes !== undefined && memory.resultPeakBytes !== undefined);
  assert.match(
    warnings?.[0]?.message ?? "",
    /^Latency was not timed: both models together need about 275 MB of memory, and may take 13\d MB of the 18\d MB available$/,
  );
});

test("a model with a node that does not fit into memory is refused before anything is opened", async () => {
  const figures: Figures[] = [];
  const messages: string[] = [];
  const work = measure({
    availableBytes: memoryForWeights(0),
    onMeasured: (measured) => figures.push(measured),
    onProgress: (_, message) => messages.push(message),
  });
  await assert.rejects(work, {
    code: "evaluation_failed",
    message:
      'The weights of node "" (MatMul) of the original alone need about 135 MB of memory, ' +
      "and may take 134 MB of the 179 MB available",
  });
  assert.deepEqual(messages, []);
  assert.deepEqual(await readdir(scratch), []);
});

test("a staged evaluation that is aborted leaves no file", async () => {
  const controller = new AbortController();
  const reason = new Error("Cancelled by the caller");
  const work = measure({
    availableBytes: memoryForWeights(1),
    signal: controller.signal,
    onProgress: (fraction) => fraction > 0.1 && controller.abort(reason),
  });
  await assert.rejects(work, reason);
  assert.deepEqual(await readdir(scratch), []);
});
