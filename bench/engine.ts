import { execFile } from "node:child_process";
import { access, mkdir, rm, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { preparePython, pythonParts } from "../test/support/prepare-python.ts";
import { minilmData, realModel, type RealModelName } from "../test/support/real-models.ts";
import { median } from "./median.ts";
import { type BenchRow, reportBench } from "./result.ts";

const exec = promisify(execFile);
const here = join(import.meta.dirname, "engine");
const cache = join(
  process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"),
  "model-optimization-service",
  "bench",
);

const cost = z.object({ seconds: z.number(), peakBytes: z.number() });
type Cost = z.infer<typeof cost>;

/** The same work for both: our recipe beside the peer's function. */
const works = {
  int4: {
    scheme: "int4-weight",
    granularity: "block",
    blockSize: 32,
    symmetric: false,
    operators: "contrib",
  },
  int8: {
    scheme: "int8-weight",
    granularity: "block",
    blockSize: 32,
    symmetric: false,
    operators: "contrib",
  },
  dynamic: { scheme: "int8-dynamic", granularity: "channel", reduceRange: false },
  "dynamic-reduced": { scheme: "int8-dynamic", granularity: "channel", reduceRange: true },
} as const;
type Work = keyof typeof works;

/** Speed-up and share of the peer's memory that are required. */
const costRuns: readonly {
  model: "1gb" | "3gb";
  work: Work;
  rounds: number;
  faster: number;
  smaller: number;
}[] = [
  { model: "1gb", work: "int4", rounds: 3, faster: 3, smaller: 6 },
  { model: "1gb", work: "dynamic", rounds: 3, faster: 8, smaller: 10 },
  { model: "3gb", work: "int4", rounds: 1, faster: 1, smaller: 1 },
];

const layerCounts = { "1gb": 6, "3gb": 19, "10gb": 64 } as const;

const accuracyRuns: readonly {
  model: RealModelName;
  data: string | undefined;
  works: readonly Work[];
}[] = [
  { model: "minilm", data: minilmData, works: ["int4", "int8", "dynamic", "dynamic-reduced"] },
  {
    model: "ocr-recognition",
    data: undefined,
    works: ["int4", "int8", "dynamic", "dynamic-reduced"],
  },
  {
    model: "ocr-recognition-v6",
    data: undefined,
    works: ["int4", "int8", "dynamic", "dynamic-reduced"],
  },
  { model: "page-orientation", data: undefined, works: ["int8", "dynamic"] },
];

await preparePython();
const python = (await pythonParts()).interpreter;
const rows: BenchRow[] = [];
for (const run of costRuns) rows.push(...(await measureCosts(run)));
rows.push(await measureHugeModel());
for (const run of accuracyRuns) rows.push(...(await measureAccuracies(run)));
await reportBench("engine", rows);

async function prepareSyntheticModel(size: keyof typeof layerCounts): Promise<string> {
  const path = join(cache, size, "model.onnx");
  const made = await access(path).then(
    () => true,
    () => false,
  );
  if (made) return path;
  process.stdout.write(`Making the ${size} model\n`);
  await mkdir(join(cache, size), { recursive: true });
  await exec(python, [
    join(here, "generate.py"),
    path,
    String(layerCounts[size]),
    size === "1gb" ? "0" : "1",
  ]);
  return path;
}

async function runOurs(model: string, output: string, work: Work, scope = "all"): Promise<Cost> {
  await rm(output, { recursive: true, force: true });
  await mkdir(output, { recursive: true });
  const recipe = JSON.stringify({ ...works[work], evaluation: { level: "weights" } });
  const { stdout } = await exec(process.execPath, [
    join(here, "compress.ts"),
    model,
    output,
    recipe,
    scope,
  ]);
  return cost.parse(JSON.parse(stdout));
}

async function runPeer(model: string, output: string, work: Work): Promise<Cost> {
  await rm(output, { recursive: true, force: true });
  await mkdir(output, { recursive: true });
  const { stdout } = await exec(python, [
    join(here, "peer.py"),
    model,
    join(output, "model.onnx"),
    work,
  ]);
  const [last = ""] = stdout.trim().split("\n").slice(-1);
  return cost.parse(JSON.parse(last));
}

async function measureCosts({
  model,
  work,
  rounds,
  faster,
  smaller,
}: (typeof costRuns)[number]): Promise<BenchRow[]> {
  const path = await prepareSyntheticModel(model);
  const output = join(cache, "output");
  const costs: { ours: Cost; peer: Cost }[] = [];
  for (let round = 0; round < rounds; round++) {
    process.stdout.write(`${model} ${work}, round ${round + 1} of ${rounds}\n`);
    costs.push({
      ours: await runOurs(path, output, work),
      peer: await runPeer(path, output, work),
    });
  }
  await rm(output, { recursive: true });
  const row = (
    what: string,
    unit: string,
    share: number,
    figure: (one: Cost) => number,
  ): BenchRow => {
    const mine = median(costs.map((pair) => figure(pair.ours)));
    const theirs = median(costs.map((pair) => figure(pair.peer)));
    const bar = share === 1 ? "ours <= peer" : `ours <= peer / ${share}`;
    return {
      what: `${work} of ${model}: ${what}`,
      unit,
      ours: mine,
      peer: theirs,
      bar,
      met: mine <= theirs / share,
    };
  };
  const rowsOfWork = [
    row("time", "s", faster, (one) => one.seconds),
    row("peak memory", "MB", smaller, (one) => one.peakBytes / 1e6),
  ];
  if (model !== "3gb") return rowsOfWork;
  return rowsOfWork.map((one) =>
    one.unit === "MB" ? { ...one, bar: "ours <= 300 MB", met: one.ours <= 300 } : one,
  );
}

/** Ours alone, beside the limit: the peer needs more memory than most machines have. */
async function measureHugeModel(): Promise<BenchRow> {
  const path = await prepareSyntheticModel("10gb");
  const output = join(cache, "output");
  const { seconds, peakBytes } = await runOurs(path, output, "int4");
  await rm(output, { recursive: true });
  process.stdout.write(`10gb int4: ${seconds.toFixed(1)} s\n`);
  const megabytes = peakBytes / 1e6;
  const what = "int4 of 10gb: peak memory (peer: the limit)";
  return {
    what,
    unit: "MB",
    ours: megabytes,
    peer: 1000,
    bar: "ours <= 1000 MB",
    met: megabytes <= 1000,
  };
}

async function measureAccuracies({
  model,
  data,
  works: names,
}: (typeof accuracyRuns)[number]): Promise<BenchRow[]> {
  const original = realModel(model);
  const originalBytes = (await stat(original)).size;
  const folder = join(cache, "accuracy", model);
  await mkdir(folder, { recursive: true });
  const samples = data ?? join(folder, "data.npz");
  if (data === undefined) await exec(python, [join(here, "image_samples.py"), original, samples]);
  const results: BenchRow[] = [];
  for (const work of names) {
    const [mine, theirs] = [join(folder, "ours"), join(folder, "peer")];
    await runOurs(original, mine, work, "matrices");
    const ran = await runPeer(original, theirs, work).then(
      () => true,
      () => false,
    );
    const models = (ran ? [mine, theirs] : [mine]).map((output) => join(output, "model.onnx"));
    const { stdout } = await exec(python, [join(here, "compare.py"), original, samples, ...models]);
    const [our, theirFigures] = z
      .array(z.object({ sqnrDb: z.number(), bytes: z.int() }))
      .parse(JSON.parse(stdout));
    if (our === undefined) throw new Error("compare.py gave no figures");
    const peer =
      theirFigures !== undefined && theirFigures.bytes < originalBytes * 0.99
        ? theirFigures
        : undefined;
    const what = `${work} of ${model}`;
    results.push({
      what: `${what}: SQNR`,
      unit: "dB",
      ours: our.sqnrDb,
      peer: peer?.sqnrDb ?? null,
      bar: "ours >= peer - 0.05",
      met: peer === undefined || our.sqnrDb >= peer.sqnrDb - 0.05,
    });
    results.push({
      what: `${what}: size`,
      unit: "MB",
      ours: our.bytes / 1e6,
      peer: peer === undefined ? null : peer.bytes / 1e6,
      bar: "ours <= peer * 1.01",
      met: peer === undefined || our.bytes <= peer.bytes * 1.01,
    });
  }
  await rm(folder, { recursive: true });
  return results;
}
