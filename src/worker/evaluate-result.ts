import path from "node:path";
import type { Accuracy } from "../contract/telemetry.ts";
import type { CompressionReport, WeightReport } from "../engine/compression-report.ts";
import { evaluateModels } from "../engine/evaluate-models.ts";
import { readPeakMemoryBytes } from "../engine/evaluate/read-peak-memory-bytes.ts";
import type { Evaluation } from "./add-measured.ts";
import type { JobInputs } from "./fetch-inputs.ts";
import type { JobContext } from "./job-context.ts";
import type { Stage } from "./stage-clock.ts";

interface EvaluationTask extends Pick<
  JobContext,
  "assignment" | "directory" | "outputDirectory" | "signal"
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
  const [onnxFile] = report.files;
  if (onnxFile === undefined) throw new TypeError("A compression left no file");
  await evaluateModels({
    originalPath: inputs.model.path,
    resultPath: path.join(outputDirectory, onnxFile.name),
    evaluation: assignment.recipe.evaluation,
    executionProvider: assignment.target.executionProvider,
    dataPath: inputs.dataPath,
    scratchDirectory: task.directory,
    signal,
    onProgress: stage.onProgress,
    log: stage.log,
    onMeasured(measured) {
      for (const { message } of measured.warnings ?? []) stage.log(`Warning: ${message}`);
      task.onMeasured(measured);
    },
  });
}

/** Accuracy of the worst of the quantized weights. */
function weightAccuracy(weights: readonly WeightReport[]): { accuracy?: Accuracy } {
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
