import { execFile } from "node:child_process";
import { mkdir, rename, rm } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { exists } from "../../test/support/prepare-python.ts";
import { benchCache } from "../engine/bench-cache.ts";
import { prepareSyntheticModel, syntheticModels } from "../engine/prepare-synthetic-model.ts";
import { quantizerCost, type QuantizerCost, runOurs } from "../engine/run-quantizer.ts";
import { median } from "../median.ts";
import type { BenchRow } from "../result.ts";

const exec = promisify(execFile);
const rounds = 3;
/** Q4_K searches for its scales; the others take them from a block's range as ours does. */
const types = ["q4_0", "q4_1", "q4_K"] as const;

/** Time and memory from file to file for the same matrices, with a thread for each processor. */
export async function measureFiles(interpreter: string): Promise<BenchRow[]> {
  const model = await prepareSyntheticModel("1gb");
  const gguf = await prepareGguf(interpreter);
  const output = join(benchCache, "llama-cpp-output");
  const ours: QuantizerCost[] = [];
  const peers = types.map((type) => ({ type, costs: new Array<QuantizerCost>() }));
  for (let round = 0; round < rounds; round++) {
    process.stdout.write(`1gb from file to file, round ${round + 1} of ${rounds}\n`);
    ours.push(await runOurs({ model, output, work: "int4" }));
    for (const { type, costs } of peers) {
      costs.push(await quantizeGguf(interpreter, { gguf, target: join(output, type), type }));
    }
  }
  await rm(output, { recursive: true });
  return peers.flatMap(({ type, costs }) => compareFileCosts(type, ours, costs));
}

function compareFileCosts(
  type: string,
  ourCosts: readonly QuantizerCost[],
  peerCosts: readonly QuantizerCost[],
): BenchRow[] {
  const compare = (figure: (cost: QuantizerCost) => number) => {
    const [ours, peer] = [median(ourCosts.map(figure)), median(peerCosts.map(figure))];
    return { ours, peer, bar: "ours <= peer", met: ours <= peer };
  };
  const what = `1gb to int4 beside ${type}, from file to file`;
  return [
    { what: `${what}: time`, unit: "s", ...compare(({ seconds }) => seconds) },
    { what: `${what}: peak memory`, unit: "MB", ...compare(({ peakBytes }) => peakBytes / 1e6) },
  ];
}

async function prepareGguf(interpreter: string): Promise<string> {
  const path = join(benchCache, "1gb.gguf");
  if (await exists(path)) return path;
  await mkdir(benchCache, { recursive: true });
  const script = join(import.meta.dirname, "write_gguf.py");
  const partial = `${path}.partial`;
  await exec(interpreter, [script, partial, String(syntheticModels["1gb"].layers)]);
  await rename(partial, path);
  return path;
}

async function quantizeGguf(
  interpreter: string,
  { gguf, target, type }: { gguf: string; target: string; type: string },
): Promise<QuantizerCost> {
  const script = join(import.meta.dirname, "quantize_file.py");
  const threads = String(availableParallelism());
  const { stdout } = await exec(interpreter, [script, gguf, target, type, threads]);
  await rm(target);
  const [last = ""] = stdout.trim().split("\n").slice(-1);
  return quantizerCost.parse(JSON.parse(last));
}
