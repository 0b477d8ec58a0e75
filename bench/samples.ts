import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveRecipe } from "../src/contract/jobs/resolve-recipe.ts";
import type { PartialRecipe } from "../src/contract/jobs/recipe.ts";
import type { Telemetry } from "../src/contract/jobs/telemetry.ts";
import { compressModel } from "../src/engine/compress-model.ts";
import { contribTarget } from "../test/engine/quantize/compress.ts";
import { minilmData, realModel, type RealModelName } from "../test/support/real-models.ts";
import { type BenchRow, reportBench } from "./result.ts";
import { evaluateResult } from "./samples/evaluate-result.ts";
import { realKinds, writeRealSamples } from "./samples/real-samples.ts";

/**
 * SQNR of results on generated samples beside that on real data: text rendered in an outline font,
 * recorded speech, and English sentences. Arguments: names of models, by default all.
 */
const wanted = process.argv.slice(3);
const known = [...(Object.keys(realKinds) as RealModelName[]), "minilm"] as const;
const models = known.filter((name) => wanted.length === 0 || wanted.includes(name));

const recipes: Readonly<Record<string, PartialRecipe>> = {
  "int8-weight": { scheme: "int8-weight" },
  "int8-dynamic": { scheme: "int8-dynamic", reduceRange: true, operators: "contrib" },
  "int4-weight": { scheme: "int4-weight", operators: "contrib", fallback: "int8-weight" },
};

/** Most decibels between the two; 16 samples of each. */
const limitDb = 4;
const samples = 16;
const minCosine = 0.9;
const quiet = { signal: new AbortController().signal, onProgress: () => {}, log: () => {} };

const folder = await mkdtemp(join(tmpdir(), "samples-"));
const rows: BenchRow[] = [];
try {
  for (const model of models) rows.push(...(await compareModel(model)));
} finally {
  await rm(folder, { recursive: true });
}
await reportBench("samples", rows);

async function compareModel(model: RealModelName): Promise<BenchRow[]> {
  const originalPath = realModel(model);
  const kind = realKinds[model];
  const dataPath = kind === undefined ? minilmData : join(folder, "real.npz");
  if (kind !== undefined) await writeRealSamples(kind, originalPath, [dataPath]);
  const found: BenchRow[] = [];
  for (const [name, recipe] of Object.entries(recipes)) {
    const outputDirectory = await mkdtemp(join(folder, "result-"));
    await compressModel(originalPath, {
      ...quiet,
      kind: "quantize",
      recipe: resolveRecipe({ fallback: "int8-weight", ...recipe }),
      target: contribTarget,
      outputDirectory,
    });
    const resultPath = join(outputDirectory, "model.onnx");
    const evaluating = { originalPath, resultPath, samples, scratchDirectory: folder };
    const real = await evaluateResult({ ...evaluating, dataPath });
    const generated = await evaluateResult(evaluating);
    found.push(...compareFigures(`${name} of ${model}`, generated, real));
    process.stdout.write(`${JSON.stringify(found.at(-1))}\n`);
  }
  return found;
}

function compareFigures(
  what: string,
  generated: Partial<Telemetry>,
  real: Partial<Telemetry>,
): BenchRow[] {
  const [ours, peer] = [generated, real].map(({ accuracy }) => accuracy?.sqnrDb ?? null);
  const isRuined = ({ accuracy }: Partial<Telemetry>) => (accuracy?.cosine ?? 1) < minCosine;
  const judged = [generated, real].map((each) => [
    ...(each.warnings ?? []).map(({ code }) => code).filter((code) => code.startsWith("output_")),
    ...(isRuined(each) ? ["accuracy_below_floor"] : []),
  ]);
  const [said, wanted] = judged.map((codes) => [...new Set(codes)].toSorted().join());
  return [
    {
      what: `${what}: SQNR, warnings ${said || "none"} (real: ${wanted || "none"})`,
      unit: "dB",
      ours: ours ?? NaN,
      peer: peer ?? null,
      bar: `within ${limitDb} dB, same warnings`,
      met: said === wanted && Math.abs((ours ?? NaN) - (peer ?? NaN)) <= limitDb,
    },
  ];
}
