import { labelRuntimeErrors } from "./label-runtime-errors.ts";
import type { ModelPair } from "./model-pair.ts";
import { describeShapes, type SampleSource } from "./open-samples.ts";
import { addSampleOutput, emptyOutputComparison } from "./output-comparison.ts";
import type { OutputComparison } from "./output-comparison.ts";
import type { Sample, TensorData } from "./tensor-data.ts";

interface CompareOptions {
  /** Names of the outputs to compare. */
  readonly outputs: readonly string[];
  readonly signal: AbortSignal;
  /** Called with the number of samples that were compared. */
  readonly onSample: (done: number) => void;
  readonly log: (line: string) => void;
}

/** Runs both models on each sample and compares their outputs. */
export async function compareOnSamples(
  models: ModelPair,
  source: SampleSource,
  options: CompareOptions,
): Promise<OutputComparison[]> {
  const comparisons = options.outputs.map(emptyOutputComparison);
  let done = 0;
  for await (const sample of source.samples) {
    if (done === 0) {
      const first = describeShapes(sample);
      options.log(`Comparing ${source.count} ${source.data} samples, the first: ${first}`);
    }
    const outputs = await runBoth(models, sample, { ...options, code: source.failureCode });
    for (const comparison of comparisons) addByName(comparison, outputs);
    done += 1;
    options.onSample(done);
  }
  return comparisons;
}

type PairOutputs = Readonly<Record<keyof ModelPair, readonly TensorData[]>>;

async function runBoth(
  models: ModelPair,
  sample: Sample,
  { outputs, signal, code }: CompareOptions & { code: SampleSource["failureCode"] },
): Promise<PairOutputs> {
  const run = (which: keyof ModelPair) => models[which].run(sample, outputs);
  return {
    original: await labelRuntimeErrors("original", run("original"), { signal, code }),
    result: await labelRuntimeErrors("result", run("result"), { signal }),
  };
}

function addByName(comparison: OutputComparison, outputs: PairOutputs): void {
  const original = outputs.original.find(({ name }) => name === comparison.name);
  const result = outputs.result.find(({ name }) => name === comparison.name);
  if (original && result) addSampleOutput(comparison, original, result);
}
