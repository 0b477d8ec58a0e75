import { execFile } from "node:child_process";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { z } from "zod";
import { realModel } from "../../test/support/real-models.ts";
import { median } from "../median.ts";
import type { BenchRow } from "../result.ts";
import { type Size, writeCheckpoint } from "./random-checkpoint.ts";
import { convert } from "./run-convert.ts";

const exec = promisify(execFile);
const cost = z.object({ cpuSeconds: z.number(), peakBytes: z.number() });
const predicting = z.object({ perplexity: z.number() });
type Load = z.infer<typeof cost>;
type Cost = Load & { readonly seconds: number };

const repository = join(import.meta.dirname, "../..");
const texts = ["LICENSE", "README.md", "docs/security.md"];
/** Of 512 tokens. Activations are rounded in both, so that few windows differ by more. */
const windows = 16;
const loads = 5;

/** A real GGUF file; without an interpreter that has the builder there is no peer. */
export async function measureSmolLm(
  folder: string,
  interpreter: string | undefined,
): Promise<BenchRow[]> {
  const file = realModel("smollm2");
  const what = "SmolLM2-135M";
  const ours = await timeOurs(pathToFileURL(file).href, folder);
  if (interpreter === undefined) return costRows(what, { ours });
  const folders = { ours: join(folder, "ours"), peer: join(folder, "peer") };
  await rename(join(folder, "result"), folders.ours);
  const checkpoint = join(folder, "checkpoint");
  await runScript(interpreter, "write_checkpoint.py", [file, checkpoint]);
  const peer = await timeBuilder(interpreter, checkpoint, folder);
  const rows = [
    ...costRows(what, { ours, peer }),
    await comparePerplexity(interpreter, folder, folders),
    ...(await compareLoads(interpreter, folders)),
  ];
  for (const done of [checkpoint, ...Object.values(folders)]) await rm(done, { recursive: true });
  return rows;
}

/** A checkpoint of random weights that lies on the disk. */
export async function compareRandomModel(
  size: Size,
  folder: string,
  interpreter: string,
): Promise<BenchRow[]> {
  const checkpoint = join(folder, "checkpoint");
  await mkdir(checkpoint);
  await writeCheckpoint(checkpoint, size);
  const peer = await timeBuilder(interpreter, checkpoint, folder);
  const ours = await timeOurs(`${pathToFileURL(checkpoint).href}/`, folder);
  for (const name of ["checkpoint", "peer", "result", "kept"]) {
    await rm(join(folder, name), { recursive: true });
  }
  return costRows(`${size} from the disk`, { ours, peer, mostTime: 1 / 5, mostMemory: 1 / 25 });
}

/** Both are whole processes, with what they load first. */
async function timeOurs(source: string, folder: string): Promise<Cost> {
  const start = performance.now();
  const made = await convert(source, folder);
  return { ...made, seconds: (performance.now() - start) / 1000 };
}

async function timeBuilder(interpreter: string, checkpoint: string, folder: string): Promise<Cost> {
  const start = performance.now();
  const places = [checkpoint, join(folder, "peer"), join(folder, "peer-cache")];
  const printed = await runScript(interpreter, "build_folder.py", places);
  const made = cost.parse(JSON.parse(printed));
  return { ...made, seconds: (performance.now() - start) / 1000 };
}

interface Folders {
  readonly ours: string;
  readonly peer: string;
}

async function comparePerplexity(
  interpreter: string,
  folder: string,
  folders: Folders,
): Promise<BenchRow> {
  const text = join(folder, "text.txt");
  const contents = texts.map(async (name) => readFile(join(repository, name), "utf8"));
  await writeFile(text, (await Promise.all(contents)).join("\n"));
  const measure = async (of: string) => {
    // transformers loses the split into digits: both get the same tokens.
    const options = [of, join(folders.ours, "tokenizer.json"), text, String(windows)];
    const printed = await runScript(interpreter, "measure_perplexity.py", options);
    return predicting.parse(JSON.parse(printed)).perplexity;
  };
  const [ours, peer] = [await measure(folders.ours), await measure(folders.peer)];
  const met = Math.abs(ours / peer - 1) <= 0.005;
  return { what: "its perplexity", unit: "", ours, peer, bar: "within 0.5 % of peer", met };
}

async function compareLoads(interpreter: string, folders: Folders): Promise<BenchRow[]> {
  const measure = async (of: string) =>
    cost.parse(JSON.parse(await runScript(interpreter, "load_folder.py", [of])));
  const [ours, peer]: [Load[], Load[]] = [[], []];
  for (let round = 0; round < loads; round++) {
    ours.push(await measure(folders.ours));
    peer.push(await measure(folders.peer));
  }
  // On the clock a fifth of a second is too short to be compared.
  const seconds = (costs: readonly Load[]) => median(costs.map(({ cpuSeconds }) => cpuSeconds));
  const megabytes = (costs: readonly Load[]) =>
    median(costs.map(({ peakBytes }) => peakBytes)) / 1e6;
  return [
    compareRow("loading its result, time of processors", "s", [seconds(ours), seconds(peer)], 1.1),
    compareRow("memory while it answers", "MB", [megabytes(ours), megabytes(peer)], 1.1),
  ];
}

interface Costs {
  readonly ours: Cost;
  readonly peer?: Cost;
  readonly mostTime?: number;
  readonly mostMemory?: number;
}

function costRows(what: string, { ours, peer, mostTime, mostMemory }: Costs): BenchRow[] {
  const bytes = [ours.peakBytes / 1e6, peer && peer.peakBytes / 1e6] as const;
  return [
    compareRow(what, "s", [ours.seconds, peer?.seconds], mostTime),
    compareRow("its time of processors", "s", [ours.cpuSeconds, peer?.cpuSeconds]),
    compareRow("its memory", "MB", bytes, mostMemory),
  ];
}

/** @param most part of the peer's figure that ours may be */
function compareRow(
  what: string,
  unit: string,
  [ours, peer]: readonly [ours: number, peer: number | undefined],
  most?: number,
): BenchRow {
  if (peer === undefined || most === undefined) {
    return { what, unit, ours, peer: peer ?? null, bar: "none", met: null };
  }
  return { what, unit, ours, peer, bar: `ours <= ${most} * peer`, met: ours <= most * peer };
}

/** @returns the last line: the builder prints what it does */
async function runScript(
  interpreter: string,
  script: string,
  args: readonly string[],
): Promise<string> {
  const { stdout } = await exec(interpreter, [join(import.meta.dirname, script), ...args], {
    env: { ...process.env, HF_HUB_OFFLINE: "1" },
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout.trim().split("\n").at(-1) ?? "";
}
