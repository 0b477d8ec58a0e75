import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type BenchRow, limitRow } from "../result.ts";
import { benchCache } from "./bench-cache.ts";
import { prepareSyntheticModel } from "./prepare-synthetic-model.ts";
import { runOurs } from "./run-quantizer.ts";

/** Memory for 10 GB of weights. Without a peer: ONNX Runtime's quantizers read the model whole. */
export async function measureHugeModel(): Promise<BenchRow> {
  const model = await prepareSyntheticModel("10gb");
  const output = join(benchCache, "output");
  const { seconds, peakBytes } = await runOurs({ model, output, work: "int4" });
  await rm(output, { recursive: true });
  process.stdout.write(`10gb int4: ${seconds.toFixed(1)} s\n`);
  return limitRow("int4 of 10gb: peak memory", "MB", peakBytes / 1e6, 1000);
}
