import { rm } from "node:fs/promises";
import { join } from "node:path";
import { realModel } from "../../test/support/real-models.ts";
import { benchCache } from "../engine/bench-cache.ts";
import { runOurs } from "../engine/run-quantizer.ts";
import type { BenchRow } from "../result.ts";
import { readCharacterErrors } from "../samples/real-samples.ts";

/** Characters that results may read wrong beside those that the original does. */
const mostLost = 0.005;

/** Characters of 200 rendered lines that are read wrong, by what a job for `cpu-int8` makes. */
export async function measureRecognition(): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  const output = join(benchCache, "recognition");
  for (const name of ["ocr-recognition", "ocr-recognition-v6"] as const) {
    const model = realModel(name);
    await runOurs({ model, output, work: "target", evaluation: {} });
    const rates = await readCharacterErrors([model, join(output, "model.onnx")]);
    const [original = NaN, ours = NaN] = rates;
    rows.push({
      what: `${name} for cpu-int8: character error rate (peer: in fp32)`,
      unit: "",
      ours,
      peer: original,
      bar: `ours <= peer + ${mostLost}`,
      met: ours <= original + mostLost,
    });
  }
  await rm(output, { recursive: true });
  return rows;
}
