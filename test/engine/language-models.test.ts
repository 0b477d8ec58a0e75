import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { PartialRecipe } from "../../src/contract/jobs/recipe.ts";
import type { CompressionReport } from "../../src/engine/compression-report.ts";
import { evaluateModels } from "../../src/engine/evaluate-models.ts";
import { pythonMissing, runPythonFile } from "../support/python.ts";
import { compress } from "./quantize/compress.ts";

const variants = {
  untied: [],
  tied: ["tied"],
  "tied with normalized queries": ["tied", "normalized"],
} as const;
type Variant = keyof typeof variants;

let folder = "";
before(async () => {
  if (pythonMissing !== false) return;
  folder = await mkdtemp(join(tmpdir(), "language-models-"));
  for (const [name, options] of Object.entries(variants)) {
    await runPythonFile("build_language_model.py", [join(folder, `${name}.onnx`), ...options]);
  }
});
after(async () => {
  if (folder !== "") await rm(folder, { recursive: true });
});

const int4: PartialRecipe = { scheme: "int4-weight", operators: "contrib" };

interface Result {
  readonly originalPath: string;
  readonly resultPath: string;
  readonly report: CompressionReport;
}

async function compressVariant(name: Variant, recipe: PartialRecipe): Promise<Result> {
  const originalPath = join(folder, `${name}.onnx`);
  const directory = await mkdtemp(join(folder, "result-"));
  const report = await compress(originalPath, directory, recipe);
  return { originalPath, resultPath: join(directory, "model.onnx"), report };
}

/** Worst SQNR on generated samples, dB, and what the log says of the first. */
async function evaluate(
  { originalPath, resultPath }: Result,
  options: { availableBytes?: number } = {},
): Promise<{ sqnrDb: number; log: string }> {
  const lines: string[] = [];
  let sqnrDb = NaN;
  const scratchDirectory = await mkdtemp(join(folder, "scratch-"));
  await evaluateModels({
    originalPath,
    resultPath,
    evaluation: { samples: 2, latencyBudgetSeconds: 0, minCosine: -1 },
    executionProvider: "cpu",
    threads: 1,
    scratchDirectory,
    signal: new AbortController().signal,
    onProgress: () => {},
    onMeasured: ({ accuracy }) => (sqnrDb = accuracy?.sqnrDb ?? sqnrDb),
    log: (line) => lines.push(line),
    ...options,
  });
  return { sqnrDb, log: lines.join("\n") };
}

for (const name of ["untied", "tied", "tied with normalized queries"] as const) {
  test(`a ${name} decoder is evaluated on its first tokens`, { skip: pythonMissing }, async () => {
    const { sqnrDb, log } = await evaluate(await compressVariant(name, int4));
    assert.match(log, /past_key_values\.1\.value: float32\[1,2,0,32\]/);
    assert.match(log, /attention_mask: int64\[1,32\]/);
    assert.ok(sqnrDb > 8, `${sqnrDb} dB`);
  });
}

test("a decoder that is run in stages is evaluated too", { skip: pythonMissing }, async () => {
  const result = await compressVariant("untied", int4);
  const availableBytes = Math.ceil((128 * 1024 ** 2 + 2 * 200_000) / 0.75);
  const { sqnrDb, log } = await evaluate(result, { availableBytes });
  assert.match(log, /original does not fit into memory and is run in \d stages/);
  assert.match(log, /past_key_values\.0\.key: float32\[1,2,0,32\]/);
  assert.ok(sqnrDb > 8, `${sqnrDb} dB`);
});
