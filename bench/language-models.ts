import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hashStoredFile } from "../src/storage/hash-stored-file.ts";
import { installPeer } from "./install-peer.ts";
import { compareRandomModel, measureSmolLm } from "./language-models/compare-builder.ts";
import { serveCheckpoint, type Size, sizes } from "./language-models/random-checkpoint.ts";
import { convert, runConvert } from "./language-models/run-convert.ts";
import { type BenchRow, limitRow, reportBench } from "./result.ts";

/**
 * From a checkpoint to a language model in 4 bits: a real GGUF file, and random Llamas that a range
 * server makes up. Arguments: their sizes, by default 0.85B and 7B, which takes 9 GB of the disk. The
 * result of 70B is hashed share by share, and not kept. The peer is ONNX Runtime GenAI's builder, up to
 * 0.85B: it takes 8 bytes of memory for each parameter.
 */
const [, ...chosen] = process.argv.slice(2);

const kills = 10;
/** What passes before the first weight is worked on, about. */
const startSeconds = 0.7;

await using cleanup = new AsyncDisposableStack();
const owner = { after: (work: () => unknown) => cleanup.defer(async () => void (await work())) };
const folder = await mkdtemp(join(tmpdir(), "language-models-"));
owner.after(() => rm(folder, { recursive: true }));

const builder = await installPeer({
  title: "ONNX Runtime GenAI's builder with torch",
  folder: "genai-builder",
  requirements: join(import.meta.dirname, "language-models/requirements.txt"),
  neededBytes: 8e9,
});
const rows: BenchRow[] = await measureSmolLm(folder, builder);
for (const size of chosen.length === 0 ? ["0.85B", "7B"] : chosen) {
  if (!isSize(size))
    throw new TypeError(`"${size}" is not one of ${Object.keys(sizes).join(", ")}`);
  if (size === "0.85B" && builder !== undefined) {
    rows.push(...(await compareRandomModel(size, folder, builder)));
  }
  const source = await serveCheckpoint(owner, size);
  rows.push(...(size === "70B" ? await measureShares(source) : await measureSize(size, source)));
}
await reportBench("language-models", rows);

function isSize(name: string): name is Size {
  return Object.hasOwn(sizes, name);
}

async function measureSize(size: Size, source: string): Promise<BenchRow[]> {
  const { seconds, cpuSeconds, peakBytes } = await convert(source, folder);
  const hashes = await hashResult();
  return [
    size === "7B" ? limitRow(size, "s", seconds, 120) : figure(size, "s", seconds),
    figure("its time of processors", "s", cpuSeconds),
    limitRow("its memory", "MB", peakBytes / 1e6, 400),
    ...(await measureKills(source, { hashes, seconds })),
  ];
}

/** One process, which is killed again and again and goes on with what is not finished. */
async function measureKills(
  source: string,
  whole: { readonly hashes: string; readonly seconds: number },
): Promise<BenchRow[]> {
  // In the first half of the work, so that none of them comes after its end.
  const killAt = startSeconds + whole.seconds / 2 / kills;
  let killed = 0;
  while (killed < kills && (await killAfter(killAt, source))) killed++;
  const { seconds } = await convert(source, folder);
  const repeated = (killed * killAt + seconds - whole.seconds) / killed;
  const isSame = (await hashResult()) === whole.hashes;
  return [
    limitRow(`killed ${killed} times: repeated each time, with the start`, "s", repeated, 10),
    limitRow("results that differ then", "results", isSame ? 0 : 1, 0),
  ];
}

/** @returns whether it was still at work then */
async function killAfter(seconds: number, source: string) {
  try {
    const timeout = Math.ceil(seconds * 1000);
    await runConvert(source, folder, [], { timeout, killSignal: "SIGKILL" });
    return false;
  } catch (error) {
    if (error instanceof Error && "signal" in error && error.signal === "SIGKILL") return true;
    throw error;
  }
}

/** The shares of a model whose result does not fit on the disk, one after the other. */
async function measureShares(source: string): Promise<BenchRow[]> {
  const shares = 80;
  let [seconds, peakBytes, bytes] = [0, 0, 0];
  for (let share = 0; share < shares; share++) {
    const made = await convert(source, folder, [String(shares), String(share)]);
    const file = join(folder, `share-${share}`);
    const hashed = await hashStoredFile(file, { signal: undefined });
    await rm(file);
    bytes += hashed.bytes;
    seconds += made.seconds;
    peakBytes = Math.max(peakBytes, made.peakBytes);
  }
  return [
    limitRow("70B in 80 shares", "s", seconds, 1200),
    limitRow("its memory", "MB", peakBytes / 1e6, 400),
    figure("its result", "GB", bytes / 1e9),
  ];
}

async function hashResult(): Promise<string> {
  const result = join(folder, "result");
  const hashes: string[] = [];
  for (const name of (await readdir(result)).toSorted()) {
    const { sha256 } = await hashStoredFile(join(result, name), { signal: undefined });
    hashes.push(`${name} ${sha256}`);
  }
  await rm(result, { recursive: true });
  await rm(join(folder, "kept"), { recursive: true });
  return hashes.join("\n");
}

function figure(what: string, unit: string, ours: number): BenchRow {
  return { what, unit, ours, peer: null, bar: "none", met: null };
}
