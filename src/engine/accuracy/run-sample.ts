import { describeSample } from "../samples/generate-sample.ts";
import { labelRuntimeErrors } from "../runtime/label-runtime-errors.ts";
import type { ModelPair, RunnableModel, SummedSample } from "../runtime/model-session.ts";
import type { SampleSource } from "../samples/open-samples.ts";
import type { Sample, TensorData } from "../runtime/tensor-data.ts";

interface RunOptions {
  readonly which: keyof ModelPair;
  /** Number of the sample, from 0. */
  readonly index: number;
  readonly sample: Sample;
  readonly source: SampleSource;
  readonly outputs: readonly string[];
  readonly summing?: SummedSample | undefined;
  readonly signal: AbortSignal;
}

/**
 * Runs a model, or a stage of one, on a sample.
 * @throws ServiceError that names the sample; its code says that the data is at fault where the
 * original refuses the caller's
 */
export async function runSample(
  model: RunnableModel,
  { which, index, sample, source, outputs, summing, signal }: RunOptions,
): Promise<readonly TensorData[]> {
  const place = ` on sample ${index + 1} of ${source.count}, ${describeSample(model, sample)}`;
  const code = which === "original" ? source.failureCode : undefined;
  return labelRuntimeErrors(which, model.run(sample, outputs, summing), signal, { code, place });
}
