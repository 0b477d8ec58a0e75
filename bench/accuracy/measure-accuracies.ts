import { execFile } from "node:child_process";
import { mkdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { errorMessage } from "../../src/log/error-message.ts";
import { pythonInterpreter } from "../../test/support/python.ts";
import { minilmData, realModel, type RealModelName } from "../../test/support/real-models.ts";
import { benchCache } from "../engine/bench-cache.ts";
import { type QuantizerCost, runOurs, runPeer } from "../engine/run-quantizer.ts";
import { installPeer } from "../install-peer.ts";
import { type BenchRow, leastRow, limitRow } from "../result.ts";
import { realKinds, writeRealSamples, writeSentences } from "../samples/real-samples.ts";

const exec = promisify(execFile);

const matrices = { scope: "matrices" } as const;

/**
 * How ours runs, and the works of peer.py and of neural_compressor.py that make the same of a model.
 * Those of peer.py are calibrated for `static` only.
 */
const comparisons = {
  int4: { ...matrices, peers: ["int4", "int4-k-quant"], compressor: ["gptq", "awq"] },
  int8: { ...matrices, peers: ["int8"], compressor: [] },
  dynamic: { ...matrices, peers: ["dynamic"], compressor: ["dynamic"] },
  "dynamic-reduced": { ...matrices, peers: ["dynamic-reduced"], compressor: [] },
  static: {
    scope: "all",
    evaluation: {},
    peers: ["static", "static-channel", "static-percentile"],
    compressor: ["static", "smooth"],
  },
} as const;
type Compared = keyof typeof comparisons;

/** Of a transformer: what ours has to reach whatever the peers do. */
const minilmLimits: Readonly<Partial<Record<Compared, (ours: Figures) => BenchRow[]>>> = {
  int4: ({ sqnrDb, seconds }) => [
    leastRow("int4 of minilm: SQNR", "dB", sqnrDb, 17.7),
    limitRow("int4 of minilm: time", "s", seconds, 6),
  ],
  dynamic: ({ sqnrDb }) => [leastRow("dynamic of minilm: SQNR", "dB", sqnrDb, 20.5)],
  static: ({ cosine }) => [leastRow("static of minilm: cosine", "", cosine, 0.99)],
};

/** Least SQNR where no peer's result is smaller than the model, dB. */
const leastSqnrDb = 10;

const calibrationSentences = 128;

const accuracy = z.object({ sqnrDb: z.number(), cosine: z.number(), bytes: z.int() });
type Figures = z.infer<typeof accuracy> & { readonly seconds: number };

interface Place {
  readonly name: RealModelName;
  readonly folder: string;
  /** Samples to compare on, and others. */
  readonly data: string;
  readonly calibration: string;
  /** Python with Neural Compressor, where that can be had. */
  readonly compressor: string | undefined;
}

/** Models that there is real data for. */
export const comparedModels = [...(Object.keys(realKinds) as RealModelName[]), "minilm"] as const;

/**
 * SQNR of outputs and size of real models on real data, beside the best of the quantizers of ONNX
 * Runtime and of Intel's Neural Compressor.
 */
export async function measureAccuracies(names: readonly RealModelName[]): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  const compressor = await installPeer({
    title: "Neural Compressor",
    folder: "neural-compressor",
    requirements: join(import.meta.dirname, "requirements.txt"),
    neededBytes: 1.5e9,
  });
  for (const name of names) {
    const folder = join(benchCache, "accuracy", name);
    await mkdir(folder, { recursive: true });
    const place = { name, folder, compressor, ...(await prepareData(name, folder)) };
    for (const work of Object.keys(comparisons) as Compared[]) {
      rows.push(...(await compareWork(work, place)));
    }
    await rm(folder, { recursive: true });
  }
  return rows;
}

async function prepareData(
  name: RealModelName,
  folder: string,
): Promise<Pick<Place, "data" | "calibration">> {
  const kind = realKinds[name];
  const calibration = join(folder, "calibration.npz");
  if (kind !== undefined) {
    const data = join(folder, "data.npz");
    await writeRealSamples(kind, realModel(name), [data, calibration]);
    return { data, calibration };
  }
  await writeSentences(calibration, calibrationSentences);
  return { data: minilmData, calibration };
}

async function compareWork(work: Compared, place: Place): Promise<BenchRow[]> {
  const what = `${work} of ${place.name}`;
  const ours = await measureOurs(work, place);
  if (ours === undefined) {
    process.stdout.write(`${what}: there is nothing to quantize\n`);
    return [];
  }
  const best = await findBestPeer(listPeerRuns(work, place), place, what);
  const limits = place.name === "minilm" ? (minilmLimits[work]?.(ours) ?? []) : [];
  const rows = [...(await compareAtSize(what, work, { place, ours, best })), ...limits];
  for (const row of rows) process.stdout.write(`${JSON.stringify(row)}\n`);
  return rows;
}

/** Undefined for a model in which hardly a byte can change. */
async function measureOurs(
  work: Compared | "static-integers",
  place: Place,
): Promise<Figures | undefined> {
  const model = realModel(place.name);
  const comparison = comparisons[work === "static-integers" ? "static" : work];
  const { peers: _, compressor: _compressor, ...run } = comparison;
  const { calibration } = place;
  const output = join(place.folder, "ours");
  try {
    const { seconds, forms } = await runOurs({ model, output, work, calibration, ...run });
    const ours = { seconds, ...(await measure(output, place)) };
    process.stdout.write(`${work} of ${place.name}: ours ${JSON.stringify({ ...ours, forms })}\n`);
    return (await isUnchanged(ours, model)) ? undefined : ours;
  } catch (error) {
    if (errorMessage(error).includes("nothing_to_quantize")) return undefined;
    throw error;
  }
}

interface PeerRun {
  readonly method: string;
  readonly run: () => Promise<QuantizerCost>;
}

function listPeerRuns(
  work: Compared,
  { name, folder, calibration, compressor: interpreter }: Place,
): PeerRun[] {
  const model = realModel(name);
  const output = peerFolder(folder);
  const { peers, compressor } = comparisons[work];
  const runs: PeerRun[] = peers.map((method) => ({
    method,
    run: async () => {
      const data = method.startsWith("static") ? calibration : undefined;
      return runPeer(method, { model, output, calibration: data });
    },
  }));
  if (interpreter === undefined) return runs;
  const script = join(import.meta.dirname, "neural_compressor.py");
  const others = compressor.map((method) => ({
    method: `Neural Compressor's ${method}`,
    run: async () => runPeer(method, { model, output, calibration }, { interpreter, script }),
  }));
  return [...runs, ...others];
}

function peerFolder(folder: string): string {
  return join(folder, "peer");
}

type Peer = Figures & { readonly method: string };

/** The most accurate of the peers' results that are smaller than the model; what each has is printed. */
async function findBestPeer(
  runs: readonly PeerRun[],
  place: Place,
  what: string,
): Promise<Peer | undefined> {
  const model = realModel(place.name);
  const found: Peer[] = [];
  for (const { method, run } of runs) {
    try {
      const { seconds } = await run();
      const output = peerFolder(place.folder);
      const figures = { method, seconds, ...(await measure(output, place)) };
      process.stdout.write(`${what}: peer ${JSON.stringify(figures)}\n`);
      if (!(await isUnchanged(figures, model))) found.push(figures);
    } catch (error) {
      const [last = ""] = errorMessage(error).trim().split("\n").slice(-1);
      process.stdout.write(`${what}: peer ${method} failed: ${last}\n`);
    }
  }
  return found.toSorted((a, b) => b.sqnrDb - a.sqnrDb)[0];
}

async function measure(folder: string, { name, data }: Place): Promise<z.infer<typeof accuracy>> {
  const script = join(import.meta.dirname, "..", "engine", "compare.py");
  const options = [script, realModel(name), data, join(folder, "model.onnx")];
  return accuracy.parse(JSON.parse((await exec(pythonInterpreter, options)).stdout));
}

async function isUnchanged({ bytes }: Figures, model: string): Promise<boolean> {
  return bytes >= (await stat(model)).size * 0.99;
}

/** Operators that stay in floating point for accuracy take bytes: the peer has none. */
async function compareAtSize(
  what: string,
  work: Compared,
  { place, ours, best }: { place: Place; ours: Figures; best: Peer | undefined },
): Promise<BenchRow[]> {
  const rows = compare(what, ours, best);
  const isLarger = best !== undefined && ours.bytes > best.bytes * sizeSlack;
  if (work !== "static" || !isLarger) return rows;
  const integers = await measureOurs("static-integers", place);
  if (integers === undefined) return rows;
  const unbarred = rows.map((row) =>
    row.unit === "MB" ? { ...row, bar: "none", met: null } : row,
  );
  return [...unbarred, ...compare(`${what}, all in integers`, integers, best)];
}

/** Most that a result may be larger than a peer's of the same size. */
const sizeSlack = 1.01;

function compare(what: string, ours: Figures, peer: Peer | undefined): BenchRow[] {
  if (peer === undefined) {
    return [leastRow(`${what}, where no peer's is smaller: SQNR`, "dB", ours.sqnrDb, leastSqnrDb)];
  }
  return [
    {
      what: `${what}, best peer ${peer.method}: SQNR`,
      unit: "dB",
      ours: ours.sqnrDb,
      peer: peer.sqnrDb,
      bar: "ours >= peer - 0.05",
      met: ours.sqnrDb >= peer.sqnrDb - 0.05,
    },
    {
      what: `${what}, best peer ${peer.method}: size`,
      unit: "MB",
      ours: ours.bytes / 1e6,
      peer: peer.bytes / 1e6,
      bar: `ours <= peer * ${sizeSlack}`,
      met: ours.bytes <= peer.bytes * sizeSlack,
    },
  ];
}
