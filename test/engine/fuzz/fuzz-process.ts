import { mkdirSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { ServiceError } from "../../../src/contract/errors.ts";
import type { Recipe } from "../../../src/contract/jobs/recipe.ts";
import { resolveRecipe } from "../../../src/contract/jobs/resolve-recipe.ts";
import type { Target } from "../../../src/contract/jobs/target.ts";
import { compressModel } from "../../../src/engine/compress-model.ts";
import { createRandom } from "../../../src/engine/samples/generate-sample.ts";
import { openModel } from "../../../src/engine/onnx/open-model.ts";
import { encodeHostile, hostileModels } from "./hostile-models.ts";
import { mutate } from "./mutate.ts";
import { externalFile, seedModels } from "./seed-models.ts";

/** Largest processor time that one input may take, microseconds. */
const maxMicroseconds = 5_000_000;

const granularities = {
  "int8-dynamic": ["tensor", "channel"],
  "int8-static": ["tensor", "channel"],
  "int8-weight": ["tensor", "channel", "block"],
  "int4-weight": ["block"],
  fp16: ["tensor"],
} as const satisfies Record<Recipe["scheme"], readonly Recipe["granularity"][]>;

const [, , seed = "", first = "", end = "", folder = ""] = process.argv;
const target: Target = {
  name: "fuzzed",
  description: "Any operators",
  executionProvider: "cpu",
  operators: "contrib",
  recipe: {},
  presets: {},
};
const seeds = await seedModels();
const modelPath = join(folder, "model.onnx");
const outputDirectory = join(folder, "out");
const position = openSync(join(folder, "position"), "w");
mkdirSync(outputDirectory, { recursive: true });
writeFileSync(join(folder, externalFile.name), new Uint8Array(externalFile.bytes).fill(60));

function chooseRecipe(random: () => number): Recipe {
  const one = <Choice>(choices: readonly [Choice, ...Choice[]]): Choice =>
    choices[Math.floor(random() * choices.length)] ?? choices[0];
  const scheme = one<Recipe["scheme"]>(["int8-dynamic", "int8-weight", "int4-weight", "fp16"]);
  return resolveRecipe({
    scheme,
    granularity: one<Recipe["granularity"]>(granularities[scheme]),
    blockSize: one([16, 32, 64, 128, 256]),
    symmetric: random() < 0.5,
    reduceRange: random() < 0.5,
    operators: one(["standard", "contrib"]),
    fallback: one(["none", "int8-weight"]),
    minElements: one([0, 16, 256]),
    sharding: { maxShardBytes: one([65_536, 1_073_741_824]) },
  });
}

/** A mutated model, or now and then a large one that is hard on an algorithm. */
function createInput(random: () => number): Uint8Array {
  if (random() < 0.003) {
    const names = Object.keys(hostileModels);
    const name = names[Math.floor(random() * names.length)] ?? "";
    return encodeHostile(name, 1000 + Math.floor(random() * 20_000));
  }
  return mutate(seeds[Math.floor(random() * seeds.length)] ?? new Uint8Array(), random);
}

/** Compresses one mutated model and reads the result again. @returns the code of the error that ended it */
async function tryInput(index: number): Promise<string> {
  const random = createRandom(Number(seed) * 1_000_003 + index * 7919);
  writeFileSync(modelPath, createInput(random));
  try {
    await compressModel(modelPath, {
      kind: random() < 0.5 ? "compress" : "quantize",
      recipe: chooseRecipe(random),
      target,
      outputDirectory,
      signal: AbortSignal.timeout(60_000),
      onProgress: () => {},
      log: () => {},
    });
  } catch (error) {
    if (error instanceof ServiceError && error.message.length < 2000) return error.code;
    throw error;
  }
  await openModel(join(outputDirectory, "model.onnx"), 2 ** 40);
  return "success";
}

const outcomes: Record<string, number> = {};
for (let index = Number(first); index < Number(end); index++) {
  writeSync(position, String(index).padEnd(20), 0);
  const start = process.cpuUsage();
  let failure: string | undefined;
  try {
    const outcome = await tryInput(index);
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  } catch (error) {
    failure = error instanceof Error ? (error.stack ?? error.message) : String(error);
  }
  const { user, system } = process.cpuUsage(start);
  if (user + system > maxMicroseconds)
    failure ??= `Took ${(user + system) / 1e6} s of processor time`;
  if (failure !== undefined) process.send?.({ index, failure });
  rmSync(outputDirectory, { recursive: true });
  mkdirSync(outputDirectory);
}
process.send?.({ outcomes });
process.disconnect();
