import path from "node:path";
import type { Accuracy, Telemetry } from "../contract/telemetry.ts";
import type { Assignment } from "../contract/worker.ts";
import type { CompressionReport, WeightReport } from "../engine/compression-report.ts";
import { evaluateModels } from "../engine/evaluate/evaluate-models.ts";
import { readPeakMemoryBytes } from "../engine/evaluate/read-peak-memory-bytes.ts";
import type { JobInputs } from "./fetch-inputs.ts";
import type { Stage } from "./stage-clock.ts";

interface EvaluationTask {
  readonly assignment: Assignment;
  readonly inputs: JobInputs;
  readonly report: CompressionReport;
  readonly outputDirectory: string;
  readonly signal: AbortSignal;
  readonly stage: Stage;
}

export type Evaluation = Pick<Telemetry, "accuracy" | "latency" | "memory" | "device" | "warnings">;

/** Measures the result against the original as far as the recipe asks. */
export async function evaluateResult(task: EvaluationTask): Promise<Evaluation> {
  const { assignment, report } = task;
  const workerPeakBytes = await readPeakMemoryBytes();
  switch (assignment.recipe.evaluation.level) {
    case "none":
      return { memory: { workerPeakBytes }, warnings: [] };
    case "weights":
      return { ...weightAccuracy(report.weights), memory: { workerPeakBytes }, warnings: [] };
    case "outputs": {
      const measured = await evaluateOutputs(task);
      return { ...measured, memory: { ...measured.memory, workerPeakBytes } };
    }
  }
}

async function evaluateOutputs(task: EvaluationTask) {
  const { assignment, inputs, report, outputDirectory, signal, stage } = task;
  const [onnxFile] = report.files;
  if (onnxFile === undefined) throw new TypeError("A compression left no file");
  const measured = await evaluateModels({
    originalPath: inputs.model.path,
    resultPath: path.join(outputDirectory, onnxFile.name),
    evaluation: assignment.recipe.evaluation,
    executionProvider: assignment.target.executionProvider,
    dataPath: inputs.dataPath,
    signal,
    onProgress: stage.onProgress,
    log: stage.log,
  });
  for (const { message } of measured.warnings) stage.log(`Warning: ${message}`);
  return measured;
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
