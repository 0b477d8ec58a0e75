import { mkdir } from "node:fs/promises";
import path from "node:path";
import type { JobInputs } from "./fetch-inputs.ts";
import type { JobContext } from "./job-context.ts";
import type { Stage } from "./reporter.ts";
import { ServiceOutage } from "./service-connection.ts";
import type { Recipe } from "../contract/jobs/recipe.ts";
import { type Accuracy, maxWarnings, type Telemetry } from "../contract/jobs/telemetry.ts";
import type { CompressionReport, WeightReport } from "../engine/compression-report.ts";
import { evaluateModels } from "../engine/evaluate-models.ts";
import { isCheckpoint } from "../engine/language/open-language-model.ts";
import { writeRunnableOriginal } from "../engine/language/runnable-original.ts";
import { readPeakMemoryBytes } from "../engine/runtime/read-peak-memory-bytes.ts";
import { explainUntimed } from "../engine/quantize/dialects.ts";
import { errorMessage } from "../log/error-message.ts";

interface EvaluationTask extends Pick<
  JobContext,
  "assignment" | "blobs" | "directory" | "outputDirectory" | "signal"
> {
  readonly inputs: JobInputs;
  readonly report: CompressionReport;
  readonly stage: Stage;
  /** Called with each figure as soon as it is known. */
  readonly onMeasured: (measured: Partial<Evaluation>) => void;
}

/** Measures the result against the original as far as the recipe asks. */
export async function evaluateResult(task: EvaluationTask): Promise<void> {
  const { assignment, report, onMeasured } = task;
  onMeasured({ memory: { workerPeakBytes: await readPeakMemoryBytes() } });
  switch (assignment.recipe.evaluation.level) {
    case "none":
      return;
    case "weights":
      return onMeasured(weightAccuracy(report.weights));
    case "outputs":
      return evaluateOutputs(task);
  }
}

async function evaluateOutputs(task: EvaluationTask): Promise<void> {
  const { assignment, inputs, report, outputDirectory, signal, stage } = task;
  const { path: modelPath } = inputs.model;
  const { executionProvider } = assignment.target;
  const [onnxFile] = report.files;
  if (onnxFile === undefined) throw new TypeError("A compression left no file");
  await evaluateModels({
    originalPath: await writeRunnableOriginal(modelPath, executionProvider, task.directory, signal),
    checkpointPath: isCheckpoint(modelPath) ? modelPath : undefined,
    resultPath: path.join(outputDirectory, onnxFile.name),
    evaluation: shareSamples(assignment.recipe, report),
    latencyLimits: assignment.latencyLimits,
    timingObstacle: explainUntimed(assignment.recipe),
    executionProvider,
    dataPath: inputs.dataPath,
    baselinePath: await fetchBaseline(task),
    scratchDirectory: task.directory,
    signal,
    onProgress: stage.onProgress,
    log: stage.log,
    onMeasured(measured) {
      for (const { message } of measured.warnings ?? []) stage.log(`Warning: ${message}`);
      task.onMeasured(nameData(measured, inputs));
    },
  });
}

/** The figures, with which file of samples those of the accuracy are of. */
function nameData(
  measured: Partial<Evaluation>,
  { dataSha256 }: Pick<JobInputs, "dataSha256">,
): Partial<Evaluation> {
  const { accuracy } = measured;
  return accuracy?.data === "caller"
    ? { ...measured, accuracy: { ...accuracy, dataSha256 } }
    : measured;
}

/** The evaluation with the samples of a common file that calibration or search leave it. */
export function shareSamples(
  { evaluation }: Pick<Recipe, "evaluation">,
  { calibration, search }: CompressionReport,
) {
  const shared = [calibration, search].find((each) => each?.evaluationSamples !== undefined);
  const { evaluationSamples = evaluation.samples, samples: otherSamples } = shared ?? {};
  return { ...evaluation, samples: evaluationSamples, otherSamples };
}

/**
 * Fetches the baseline's result, where there is one to time. That it is not there any more says
 * nothing of the job's result.
 * @returns its ONNX file
 */
async function fetchBaseline(task: EvaluationTask): Promise<string | undefined> {
  const { assignment, blobs, directory, signal } = task;
  if (assignment.baseline === null) return undefined;
  const folder = path.join(directory, "baseline");
  await mkdir(folder);
  try {
    for (const { name, sha256 } of assignment.baseline) {
      await blobs.materialize(sha256, path.join(folder, name), signal);
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ServiceOutage) throw error;
    const message = `The baseline's result could not be fetched: ${errorMessage(error)}`;
    task.onMeasured({ warnings: [{ code: "baseline_not_timed", message }] });
    return undefined;
  }
  return path.join(folder, assignment.baseline[0]?.name ?? "");
}

/** Accuracy of the worst of the quantized weights. */
export function weightAccuracy(weights: readonly WeightReport[]): { accuracy?: Accuracy } {
  const errors = weights.map(({ error }) => error).filter((error) => error !== null);
  if (errors.length === 0) return {};
  return {
    accuracy: {
      level: "weights",
      data: "generated",
      samples: 0,
      sqnrDb: Math.min(...errors.map(({ sqnrDb }) => sqnrDb)),
      cosine: Math.min(...errors.map(({ cosine }) => cosine)),
      outputs: [],
    },
  };
}

/** What is known of a result besides its size. */
export type Evaluation = Pick<
  Telemetry,
  "accuracy" | "latency" | "memory" | "device" | "generated" | "warnings"
>;

/** Adds what was just measured. Warnings, up to their limit, and figures of memory join those before. */
export function addMeasured(known: Evaluation, measured: Partial<Evaluation>): Evaluation {
  return {
    ...known,
    ...measured,
    memory: { ...known.memory, ...measured.memory },
    warnings: [...known.warnings, ...(measured.warnings ?? [])].slice(0, maxWarnings),
  };
}
