import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import type { PartialRecipe } from "../src/contract/jobs/recipe.ts";
import { findTarget } from "../src/contract/jobs/resolve-recipe.ts";
import { builtinTargets, type Target } from "../src/contract/jobs/target.ts";
import type { JobCosts } from "../src/contract/jobs/telemetry.ts";
import { workerExit } from "../src/contract/worker-protocol/exit-codes.ts";
import { realModel, type RealModelName } from "../test/support/real-models.ts";
import { exitCode, makeJob, type Setting, summarizeEvents } from "../test/worker/worker-process.ts";
import { prepareSyntheticModel } from "./engine/prepare-synthetic-model.ts";
import { target as worksTarget, type Work, works } from "./engine/works.ts";
import { type BenchRow, reportBench } from "./result.ts";

/**
 * What a job takes as its dry run forecasts it, before there is one like it and after that, as a
 * multiple of what jobs of real workers took: the least and the most of several. Arguments: parts of
 * the names of cases; all cases without them.
 */
const rounds = 3;
const wanted = process.argv.slice(3);

interface Case {
  readonly what: string;
  readonly path: () => Promise<string> | string;
  readonly target: Target;
  readonly recipe: PartialRecipe;
}

const compressed = { evaluation: { level: "weights" } } as const;
const evaluated = { evaluation: { samples: 4, latencyBudgetSeconds: 1 } } as const;
const languageTarget = findTarget(builtinTargets, "cpu-llm");

/** Work of `bench -- engine`, and of targets on the models of `bench -- latency`. */
const cases: readonly Case[] = [
  ...(["int4", "dynamic"] as const satisfies Work[]).flatMap((work) =>
    (["1gb", "3gb"] as const).map((size) => ({
      what: `${work} of ${size}, compressed`,
      path: () => prepareSyntheticModel(size),
      target: worksTarget,
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
    builtinTargets.slice(0, 2).flatMap((target) => [
      {
        what: `${model} for ${target.name}, compressed`,
        path: () => realModel(model),
        target,
        recipe: { ...target.recipe, ...compressed },
      },
      {
        what: `${model} for ${target.name}, evaluated`,
        path: () => realModel(model),
        target,
        recipe: { ...target.recipe, ...evaluated },
      },
    ]),
  ),
  {
    what: "smollm2 for cpu-llm, compressed",
    path: () => realModel("smollm2"),
    target: languageTarget,
    recipe: { ...languageTarget.recipe, ...compressed },
  },
];

const rows: BenchRow[] = [];
for (const one of cases) {
  const isWanted = wanted.length === 0 || wanted.some((part) => one.what.includes(part));
  if (isWanted) rows.push(...(await measureCase(one)));
}
await reportBench("forecast", rows);

interface Comparison {
  readonly cost: string;
  readonly forecast: number;
  readonly taken: readonly number[];
  readonly unit: string;
  /** How far from what was taken a forecast may be, as a part of it. */
  readonly within: number;
}

async function measureCase({ what, path, target, recipe }: Case): Promise<BenchRow[]> {
  const source = pathToFileURL(await path()).href;
  const measure = async () => {
    const { forecast, usage, size } = await runWorker(source, { target, recipe });
    assert(forecast && usage?.seconds !== undefined && size);
    const { originalBytes } = size;
    return { forecast, usage: { ...usage, seconds: usage.seconds, originalBytes } };
  };
  // The first worker compiles modules, which the image has compiled, and may read the model from
  // the disk, which later ones find in the page cache.
  await runWorker(source, { target, recipe });
  const first = await measure();
  // As a service forecasts it that has run the job once.
  const earlierCosts = [first.usage];
  const { forecast } = await runWorker(source, { dryRun: true, target, recipe, earlierCosts });
  assert(forecast?.seconds !== undefined);
  const later: (typeof first.usage)[] = [];
  for (let round = 1; round < rounds; round++) later.push((await measure()).usage);
  const sizes = [
    ["memory", "peakMemoryBytes"],
    ["disk", "diskBytes"],
  ] as const;
  const comparisons: readonly Comparison[] = [
    ...sizes.flatMap(([cost, name]) => {
      const inMegabytes = (costs: JobCosts) => costs[name] / 1e6;
      const all = [first.usage, ...later].map(inMegabytes);
      const known = { unit: "MB", within: 0.1 };
      return [
        { cost, forecast: inMegabytes(first.forecast), taken: all, ...known },
        {
          cost: `${cost}, once known`,
          forecast: inMegabytes(forecast),
          taken: all.slice(1),
          ...known,
        },
      ];
    }),
    {
      cost: "time, once known",
      forecast: forecast.seconds,
      taken: later.map(({ seconds }) => seconds),
      unit: "s",
      within: 0.25,
    },
  ];
  return comparisons.map((comparison) => compareCost(what, comparison));
}

function compareCost(what: string, { cost, forecast, taken, unit, within }: Comparison): BenchRow {
  const range = [Math.min(...taken), Math.max(...taken)];
  const worst = range
    .map((each) => forecast / each)
    .reduce((a, b) => (Math.abs(Math.log(a)) > Math.abs(Math.log(b)) ? a : b));
  const text = range.map((each) => each.toPrecision(3)).join(" to ");
  const row = {
    what: `${what}: ${cost} ${forecast.toPrecision(3)} ${unit}, measured ${text} ${unit}`,
    unit: "",
    ours: worst,
    peer: null,
    bar: `${1 - within} to ${1 + within}`,
    met: Math.abs(worst - 1) <= within,
  };
  process.stdout.write(`${row.what}\n`);
  return row;
}

async function runWorker(
  source: string,
  setting: Pick<Setting, "dryRun" | "target" | "recipe" | "earlierCosts">,
) {
  await using cleanup = new AsyncDisposableStack();
  const owner = { after: (work: () => unknown) => cleanup.defer(async () => void (await work())) };
  const { service, start } = await makeJob(owner, source, {
    ...setting,
    limits: { maxModelBytes: 1e11 },
  });
  assert.equal(await exitCode(start()), workerExit.completed);
  return summarizeEvents(service.events).telemetry;
}
