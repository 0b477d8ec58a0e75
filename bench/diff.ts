import { compareModels } from "../src/engine/diff/compare-models.ts";
import { compareResult } from "../src/engine/diff/compare-result.ts";
import { describeModel } from "../src/engine/diff/describe-model.ts";
import type { ModelDescription } from "../src/contract/models/model-description.ts";
import { preparePython } from "../test/support/prepare-python.ts";
import { prepareSyntheticModel } from "./engine/prepare-synthetic-model.ts";
import { readPeakOfProcess } from "../src/engine/runtime/read-peak-memory-bytes.ts";
import { limitRow, reportBench } from "./result.ts";

await preparePython();

/** How models are compared: a model of 3 GB, and graphs of 1,000 nodes whose names all differ. */
const { signal } = new AbortController();
const path = await prepareSyntheticModel("3gb");
const files = { originalPath: path, resultPath: path, provider: "cpu" } as const;
const result = { ...files, weights: [], maxModelBytes: 1e12, signal };

const headers = await time(() => compareResult(result));
const description = await time(() => describeModel(path, result.maxModelBytes, signal));
const peakMegabytes = (await readPeakOfProcess(process.pid)) / 1e6;
const before = chain("a", 1_000);
const nodes = await time(() => compareModels(before, chain("b", 1_001)));

await reportBench("diff", [
  limitRow("3 GB, original and result, by headers", "s", headers, 5),
  limitRow("3 GB described for later commits: one pass", "s", description, 5),
  limitRow("peak memory of both", "MB", peakMegabytes, 200),
  limitRow("two graphs of 1,000 nodes", "s", nodes, 1),
]);

/** Seconds that it takes. */
async function time(work: () => unknown): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

function chain(mark: string, length: number): ModelDescription {
  const nodes = Array.from({ length }, (_, i) => ({
    name: `${mark}${i}`,
    op: ["Add", "Mul", "Relu"][i % 3] ?? "",
    attributes: "",
    inputs: [`${mark}v${i}`],
    outputs: [`${mark}v${i + 1}`],
  }));
  return { opsets: {}, inputs: [], outputs: [], weights: [], nodes };
}
