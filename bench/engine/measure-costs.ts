import { createReadStream } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { finished } from "node:stream/promises";
import { median } from "../median.ts";
import type { BenchRow } from "../result.ts";
import { benchCache } from "./bench-cache.ts";
import { prepareSyntheticModel, type SyntheticModel } from "./prepare-synthetic-model.ts";
import { type QuantizerCost, runOurs, runPeer } from "./run-quantizer.ts";
import type { Work } from "./works.ts";

interface CostRun {
  readonly model: SyntheticModel;
  readonly work: Work;
  readonly rounds: number;
  /** Ours takes at most one such part of the peer's time. */
  readonly timeDivisor: number;
  /** Ours takes at most one such part of the peer's memory, or so many megabytes. */
  readonly memory: { readonly divisor: number } | { readonly megabytes: number };
}

const costRuns: readonly CostRun[] = [
  { model: "1gb", work: "int4", rounds: 3, timeDivisor: 3, memory: { divisor: 6 } },
  { model: "1gb", work: "dynamic", rounds: 3, timeDivisor: 8, memory: { divisor: 20 } },
  { model: "3gb", work: "int4", rounds: 1, timeDivisor: 1, memory: { megabytes: 150 } },
];

/** Time and peak memory beside ONNX Runtime's quantizers, medians of alternating rounds. */
export async function measureCosts(): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  for (const run of costRuns) rows.push(...(await measureCost(run)));
  return rows;
}

async function measureCost(run: CostRun): Promise<BenchRow[]> {
  const { model, work, rounds, timeDivisor, memory } = run;
  const path = await prepareSyntheticModel(model);
  const output = join(benchCache, "output");
  await readIntoPageCache(dirname(path));
  const costs: { ours: QuantizerCost; peer: QuantizerCost }[] = [];
  for (let round = 0; round < rounds; round++) {
    process.stdout.write(`${model} ${work}, round ${round + 1} of ${rounds}\n`);
    const ours = await runOurs({ model: path, output, work });
    costs.push({ ours, peer: await runPeer(work, { model: path, output }) });
  }
  await rm(output, { recursive: true });
  const figures = (figure: (cost: QuantizerCost) => number) => ({
    ours: median(costs.map(({ ours }) => figure(ours))),
    peer: median(costs.map(({ peer }) => figure(peer))),
  });
  const time = figures(({ seconds }) => seconds);
  const megabytes = figures(({ peakBytes }) => peakBytes / 1e6);
  return [
    { what: `${work} of ${model}: time`, unit: "s", ...time, ...divisorBar(time, timeDivisor) },
    {
      what: `${work} of ${model}: peak memory`,
      unit: "MB",
      ...megabytes,
      ...("divisor" in memory
        ? divisorBar(megabytes, memory.divisor)
        : { bar: `ours <= ${memory.megabytes}`, met: megabytes.ours <= memory.megabytes }),
    },
  ];
}

/** Else the first quantizer waits for the disk, and the second does not. */
async function readIntoPageCache(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    await finished(createReadStream(join(folder, name)).resume());
  }
}

function divisorBar(
  { ours, peer }: { ours: number; peer: number },
  divisor: number,
): Pick<BenchRow, "bar" | "met"> {
  const bar = divisor === 1 ? "ours <= peer" : `ours <= peer / ${divisor}`;
  return { bar, met: ours <= peer / divisor };
}
