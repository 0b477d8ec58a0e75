import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { emptyErrorSums, errorMetrics } from "../src/engine/evaluate/error-metrics.ts";
import { createNormal, createRandom } from "../src/engine/samples/generate-sample.ts";
import {
  type BlockFormat,
  createMatMulNBitsBlocks,
} from "../src/engine/quantize/kernels/block-format.ts";
import { quantizeBlocks } from "../src/engine/quantize/kernels/quantize-blocks.ts";
import { measureFiles } from "./llama-cpp/measure-files.ts";
import { prepareLlamaCpp } from "./llama-cpp/prepare-llama-cpp.ts";
import { measureCpuSeconds } from "./measure-cpu-seconds.ts";
import { type BenchRow, reportBench } from "./result.ts";

const exec = promisify(execFile);

/** A matrix of 64 MiB as llama.cpp takes it, N rows of K values, and how often it is quantized. */
const [n, k, rounds] = [8192, 2048, 4];
const gibibytes = (4 * n * k * rounds) / 2 ** 30;

const ggmlFigures = z.record(
  z.enum(["q4_0", "q4_1", "q4_K", "q8_0"]),
  z.object({ seconds: z.number(), bits: z.number(), sqnrDb: z.number() }),
);
type GgmlType = keyof z.infer<typeof ggmlFigures>;

/**
 * Our formats beside theirs: the same arithmetic where time is compared, as many bits an element
 * where accuracy is. Ours measures its error in that time, theirs does not.
 */
const comparisons: readonly {
  readonly ours: BlockFormat;
  readonly peer: GgmlType;
  readonly compares: "time" | "SQNR";
}[] = [
  { ours: { bits: 4, blockSize: 32, symmetric: true }, peer: "q4_0", compares: "time" },
  { ours: { bits: 4, blockSize: 32, symmetric: false }, peer: "q4_1", compares: "time" },
  { ours: { bits: 4, blockSize: 32, symmetric: false }, peer: "q4_K", compares: "time" },
  { ours: { bits: 8, blockSize: 32, symmetric: true }, peer: "q8_0", compares: "time" },
  { ours: { bits: 4, blockSize: 64, symmetric: true }, peer: "q4_0", compares: "SQNR" },
  { ours: { bits: 4, blockSize: 64, symmetric: true }, peer: "q4_K", compares: "SQNR" },
  { ours: { bits: 4, blockSize: 32, symmetric: true }, peer: "q4_1", compares: "SQNR" },
  { ours: { bits: 8, blockSize: 64, symmetric: true }, peer: "q8_0", compares: "SQNR" },
];

const values = makeMatrix();
const interpreter = await prepareLlamaCpp();
const peers = await runPeers();
await reportBench("llama-cpp", [
  ...comparisons.map(compareFormat),
  ...(await measureFiles(interpreter)),
]);

/** Weights of the normal distribution; every 128th input has larger ones. */
function makeMatrix(): Float32Array {
  const normal = createNormal(createRandom(7));
  return Float32Array.from({ length: n * k }, (_, index) =>
    index % 128 === 0 ? 6 * normal() : normal(),
  );
}

async function runPeers(): Promise<z.infer<typeof ggmlFigures>> {
  const folder = await mkdtemp(join(tmpdir(), "llama-cpp-"));
  try {
    const matrix = join(folder, "matrix.bin");
    await writeFile(matrix, values);
    const script = join(import.meta.dirname, "llama-cpp", "ggml_peer.py");
    const { stdout } = await exec(interpreter, [script, matrix, ...[n, k, rounds].map(String)]);
    return ggmlFigures.parse(JSON.parse(stdout));
  } finally {
    await rm(folder, { recursive: true });
  }
}

function compareFormat({ ours: format, peer, compares }: (typeof comparisons)[number]): BenchRow {
  const sums = emptyErrorSums();
  const matrix = { shape: { order: "nk", k, n }, format } as const;
  const into = createMatMulNBitsBlocks(matrix.shape, format);
  const quantize = () => quantizeBlocks({ values, firstRow: 0 }, matrix, into, sums);
  const theirs = peers[peer];
  const { length: codes } = into.quantizedValues;
  const bytes = codes + 4 * into.scales.length + into.zeroPoints.length;
  const name = `int${format.bits} (${(bytes * 8) / (n * k)} bits) beside ${peer} (${theirs.bits})`;
  if (compares === "time") {
    const seconds = measureCpuSeconds(quantize, rounds) / gibibytes;
    const peerSeconds = theirs.seconds / gibibytes;
    const row = { what: `float32 to ${name}`, unit: "CPU s/GiB", bar: "ours <= peer" };
    return { ...row, ours: seconds, peer: peerSeconds, met: seconds <= peerSeconds };
  }
  quantize();
  const { sqnrDb } = errorMetrics(sums);
  const row = { what: `SQNR of ${name}`, unit: "dB", bar: "ours >= peer - 0.05" };
  return { ...row, ours: sqnrDb, peer: theirs.sqnrDb, met: sqnrDb >= theirs.sqnrDb - 0.05 };
}
