import type { EvaluationWarning } from "../evaluate/evaluation-warning.ts";
import {
  addSampleOutput,
  emptyOutputComparison,
  type OutputComparison,
} from "../evaluate/output-comparison.ts";
import type { TensorData } from "../evaluate/tensor-data.ts";
import type { ModelRun } from "./model-run.ts";
import type { Recording } from "./record-original.ts";
import { runOnSamples } from "./run-on-samples.ts";
import type { RunSettings } from "./sample-visitor.ts";

interface CompareOptions extends RunSettings {
  readonly onProgress: (fraction: number, message: string) => void;
}

interface ComparedResult {
  /** One for each of the recording's outputs, in their order. */
  readonly comparisons: readonly OutputComparison[];
  readonly peakBytes: number | undefined;
  readonly warnings: readonly EvaluationWarning[];
}

/**
 * Runs the result on the original's samples and compares its outputs with the recorded ones.
 * @throws ServiceError those of runOnSamples
 */
export async function compareResult(
  run: ModelRun,
  recording: Recording,
  options: CompareOptions,
): Promise<ComparedResult> {
  const { source, outputs } = recording;
  const comparisons = new Map(outputs.map((name) => [name, emptyOutputComparison(name)]));
  const visitor = {
    prepare: () => Promise.resolve({ source, outputs }),
    visit: async (sample: number, results: readonly TensorData[]) => {
      for (const result of results) {
        const comparison = comparisons.get(result.name);
        const original = await recording.tensors.read(sample, result.name);
        if (comparison && original) addSampleOutput(comparison, original, result);
      }
    },
    onProgress: (fraction: number) => options.onProgress(fraction, "Comparing the result"),
  };
  const { peakBytes, warnings } = await runOnSamples(run, visitor, options);
  return { comparisons: [...comparisons.values()], peakBytes, warnings };
}
