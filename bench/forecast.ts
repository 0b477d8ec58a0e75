import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import type { PartialRecipe } from "../src/contract/jobs/recipe.ts";
import type { JobCosts } from "../src/contract/jobs/telemetry.ts";
import { builtinTargets } from "../src/contract/jobs/target.ts";
import { workerExit } from "../src/contract/jobs/worker-exit.ts";
import { realModel, type RealModelName } from "../test/support/real-models.ts";
import { exitCode, makeJob, summarizeEvents } from "../test/worker/worker-process.ts";
import { prepareSyntheticModel } from "./engine/prepare-synthetic-model.ts";
import { type Work, works } from "./engine/works.ts";
import { type BenchRow, reportBench } from "./result.ts";

/**
 * What a job takes as its dry run forecasts it, as a multiple of what jobs of real workers took: the
 * least and the most of several. Arguments: parts of the names of cases; all cases without them.
 */
const rounds = 3;
const wanted = process.argv.slice(3);

interface Case {
  readonly what: string;
  readonly path: () => Promise<string> | string;
  readonly recipe: PartialRecipe;
}

const compressed = { evaluation: { level: "weights" } } as const;
const evaluated = { evaluation: { samples: 4, latencyBudgetSeconds: 1 } } as const;

/** Work of `bench -- engine`, and of targets on the models of `bench -- latency`. */
const cases: readonly Case[] = [
  ...(["int4", "dynamic"] as const satisfies Work[]).flatMap((work) =>
    (["1gb", "3gb"] as const).map((size) => ({
      what: `${work} of ${size}, compressed`,
      path: () => prepareSyntheticModel(size),
      recipe: { ...works[work], ...compressed },
    })),
  ),
  ...(
    [
      "minilm",
      "ocr-detection",
      "ocr-recognition",
      "ocr-orientation",
      "ocr-detection-v6",
      "ocr-recognition-v6",
      "page-orientation",
      "voice-v5",
      "voice-16k",
    ] as const satisfies RealModelName[]
  ).flatMap((model) =>
    builtinTargets.slice(0, 2).flatMap(({ name, recipe }) => [
      {
        what: `${model} for ${name}, compressed`,
        path: () => realModel(model),
        recipe: { ...recipe, ...compressed },
      },
      {
        what: `${model} for ${name}, evaluated`,
        path: () => realModel(model),
        recipe: { ...recipe, ...evaluated },
      },
    ]),
  ),
  {
    what: "smollm2 for cpu-llm, compressed",
    path: () => realModel("smollm2"),
    recipe: { ...builtinTargets[2]?.recipe, ...compressed },
  },
];

const rows: BenchRow[] = [];
for (const one of cases) {
  const isWanted = wanted.length === 0 || wanted.some((part) => one.what.includes(part));
  if (isWanted) rows.push(...(await measureCase(one)));
}
await reportBench("forecast", rows);

async function measureCase({ what, path, recipe }: Case): Promise<BenchRow[]> {
  const source = pathToFileURL(await path()).href;
  // The first worker compiles modules, which the image has compiled.
  await runWorker(source, { dryRun: true, recipe });
  const { forecast } = await runWorker(source, { dryRun: true, recipe });
  assert(forecast);
  const taken: JobCosts[] = [];
  for (let round = 0; round < rounds; round++) {
    const { usage } = await runWorker(source, { recipe });
    assert(usage?.peakMemoryBytes !== undefined && usage.diskBytes !== undefined);
    taken.push({ peakMemoryBytes: usage.peakMemoryBytes, diskBytes: usage.diskBytes });
  }
  return (["peakMemoryBytes", "diskBytes"] as const).map((cost) => {
    const bytes = taken.map((each) => each[cost]);
    const megabytes = [Math.min(...bytes), Math.max(...bytes)].map((each) => each / 1e6);
    const range = megabytes.map((each) => each.toFixed(0)).join(" to ");
    const forecastMegabytes = forecast[cost] / 1e6;
    process.stdout.write(`${what}: ${cost} ${forecastMegabytes.toFixed(0)}, measured ${range}\n`);
    const ratios = megabytes.map((each) => forecastMegabytes / each);
    const worst = ratios.toSorted((a, b) => Math.abs(Math.log(b)) - Math.abs(Math.log(a)))[0] ?? 0;
    return {
      what: `${what}: ${cost} ${forecastMegabytes.toFixed(0)} MB, measured ${range} MB`,
      unit: "",
      ours: worst,
      peer: null,
      bar: "0.9 to 1.1",
      met: worst >= 0.9 && worst <= 1.1,
    };
  });
}

async function runWorker(source: string, setting: { dryRun?: boolean; recipe: PartialRecipe }) {
  await using cleanup = new AsyncDisposableStack();
  const owner = { after: (work: () => unknown) => cleanup.defer(async () => void (await work())) };
  const { service, start } = await makeJob(owner, source, {
    ...setting,
    limits: { maxModelBytes: 1e11 },
  });
  assert.equal(await exitCode(start()), workerExit.completed);
  return summarizeEvents(service.events).telemetry;
}
