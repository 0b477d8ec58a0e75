import type { ModelRun } from "./model-run.ts";
import type { Recording } from "./record-original.ts";
import { runOnSamples } from "./run-whole-model.ts";
import type { RunSettings } from "./sample-visitor.ts";
import { ServiceError } from "../../contract/errors.ts";
import { sampleNames } from "../../contract/jobs/figure-names.ts";
import type { Accuracy, Telemetry } from "../../contract/jobs/telemetry.ts";
import type { EvaluationWarning } from "../evaluate/evaluation-warning.ts";
import type { SessionMemory } from "../runtime/model-session.ts";
import { describeNotFiniteOutputs, isNothingCompared } from "../evaluate/not-finite-outputs.ts";
import {
  addSampleOutput,
  emptyOutputComparison,
  type OutputComparison,
} from "../evaluate/output-comparison.ts";
import { addNextTokens, emptyNextTokens, summarizeNextTokens } from "../evaluate/next-tokens.ts";
import { describeLowAccuracy, summarizeAccuracy } from "../evaluate/summarize-accuracy.ts";
import { type Sample, type TensorData, tensorNumbers } from "../runtime/tensor-data.ts";

interface AccuracyOptions extends RunSettings {
  readonly minCosine: number;
  readonly onProgress: (fraction: number, message: string) => void;
}

/** What was measured, and the error that it fails the evaluation with. */
interface MeasuredAccuracy {
  /** Absent where no element of an output can be compared. */
  readonly accuracy?: Accuracy;
  readonly memory: NonNullable<Telemetry["memory"]>;
  readonly warnings: EvaluationWarning[];
  readonly error?: ServiceError | undefined;
}

/**
 * Runs the result, and compares its outputs with the original's. On the caller's data, an output
 * whose cosine is below `minCosine` is the error accuracy_below_floor, and outputs that cannot be
 * compared are evaluation_data_invalid; on generated data these are warnings.
 * @throws ServiceError those of runOnSamples
 */
export async function measureAccuracy(
  result: ModelRun,
  recording: Recording,
  options: AccuracyOptions,
): Promise<MeasuredAccuracy> {
  const { source } = recording;
  const compared = await compareResult(result, recording, options);
  const cause = await findNotANumber(source.samples);
  const notFinite = describeNotFiniteOutputs(compared.comparisons, cause);
  const known = {
    memory: {
      originalPeakBytes: recording.memory.peakBytes,
      resultPeakBytes: compared.memory.peakBytes,
      originalGpuBytes: recording.memory.gpuBytes,
      resultGpuBytes: compared.memory.gpuBytes,
    },
    warnings: [...recording.warnings, ...compared.warnings, ...notFinite],
  };
  if (isNothingCompared(compared.comparisons)) {
    return { ...known, error: source.data === "caller" ? createDataError(cause) : undefined };
  }
  const { boundedOutputs } = recording;
  const { accuracy, warnings } = summarizeAccuracy(compared.comparisons, source, boundedOutputs);
  const measured = { ...known, warnings: [...known.warnings, ...warnings] };
  if (accuracy === undefined) return measured;
  return {
    ...measured,
    accuracy: { ...accuracy, language: compared.language },
    ...judgeAccuracy(accuracy, measured.warnings, options.minCosine),
  };
}

/** The error or the warning of a low cosine. */
function judgeAccuracy(
  accuracy: Accuracy,
  warnings: readonly EvaluationWarning[],
  minCosine: number,
): Pick<MeasuredAccuracy, "warnings" | "error"> {
  const low = describeLowAccuracy(accuracy, minCosine);
  if (low === undefined) return { warnings: [...warnings] };
  const code = "accuracy_below_floor";
  if (accuracy.data === "caller") {
    return { warnings: [...warnings], error: new ServiceError(code, low) };
  }
  const warning = { code, message: `${low} (on ${sampleNames[accuracy.data]})` } as const;
  return { warnings: [...warnings, warning] };
}

function createDataError(cause: string | undefined): ServiceError {
  const message = "The original's outputs are not finite on any sample of the evaluation data";
  const reason = cause === undefined ? "" : `: ${cause}`;
  return new ServiceError("evaluation_data_invalid", `${message}${reason}`);
}

interface CompareOptions extends RunSettings {
  readonly onProgress: (fraction: number, message: string) => void;
}

interface ComparedResult {
  /** One for each of the recording's outputs, in their order. */
  readonly comparisons: readonly OutputComparison[];
  /** Absent for samples that are no windows of tokens. */
  readonly language: Accuracy["language"];
  readonly memory: Partial<SessionMemory>;
  readonly warnings: readonly EvaluationWarning[];
}

/**
 * Runs the result on the original's samples and compares its outputs with the recorded ones.
 * @throws ServiceError those of runOnSamples
 */
async function compareResult(
  run: ModelRun,
  recording: Recording,
  options: CompareOptions,
): Promise<ComparedResult> {
  const { source, outputs } = recording;
  const comparisons = new Map(outputs.map((name) => [name, emptyOutputComparison(name)]));
  const nextTokens = emptyNextTokens();
  const visitor = {
    prepare: () => Promise.resolve({ source, outputs }),
    visit: async (sample: number, results: readonly TensorData[]) => {
      for (const result of results) {
        const comparison = comparisons.get(result.name);
        const original = await recording.tensors.read(sample, result.name);
        if (!comparison || !original) continue;
        addSampleOutput(comparison, original, result);
        const window = source.windows?.[sample];
        if (window !== undefined) addNextTokens(nextTokens, window, original, result);
      }
    },
    onProgress: (fraction: number) => options.onProgress(fraction, "Comparing the result"),
  };
  const { memory, warnings } = await runOnSamples(run, visitor, options);
  const language = source.windows && summarizeNextTokens(nextTokens);
  return { comparisons: [...comparisons.values()], language, memory, warnings };
}

/** Names the first input that has NaN; undefined if there is none. */
async function findNotANumber(samples: AsyncIterable<Sample>): Promise<string | undefined> {
  let index = 0;
  for await (const sample of samples) {
    index += 1;
    const tensor = sample.find((each) => tensorNumbers(each).some(Number.isNaN));
    if (tensor !== undefined) return `input "${tensor.name}" of sample ${index} has NaN`;
  }
  return undefined;
}
