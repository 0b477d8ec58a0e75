import type { CompressionReport } from "../engine/compression-report.ts";
import { cutPipeline } from "./cut-pipeline.ts";
import { type Evaluation, evaluateResult } from "./evaluate-result.ts";
import type { JobInputs } from "./fetch-inputs.ts";
import { publishFiles } from "./publish-files.ts";
import type { JobContext } from "./job-context.ts";
import { summarizeResult } from "./summarize-result.ts";

/**
 * The work after the compression: cuts the pipeline, evaluates the result, stores and reports it.
 */
export async function finishJob(
  context: JobContext,
  inputs: JobInputs,
  report: CompressionReport,
): Promise<void> {
  const { assignment, outputDirectory, reporter, runStage, signal } = context;
  const { dryRun } = assignment;
  reporter.model(report.originalBytes, inputs.model.sha256);
  reporter.telemetry(sizeTelemetry(report, dryRun));
  const stageFiles = await cutPipeline(assignment, report, context);
  const evaluation = dryRun
    ? { warnings: [] }
    : await runStage("evaluate", async (stage) =>
        evaluateResult({ assignment, inputs, report, outputDirectory, signal, stage }),
      );
  reporter.telemetry(evaluation);
  const files = [...report.files, ...stageFiles];
  const document = resultReport(context, report, evaluation);
  const artifacts = await runStage("publish", async (stage) =>
    publishFiles({ files, report: document }, { ...context, stage }),
  );
  for (const artifact of artifacts) reporter.artifact(artifact);
  for (const line of summarizeResult(report, evaluation)) reporter.log(line);
}

/** Content of `report.json`. */
function resultReport(
  { assignment: { id, recipe } }: JobContext,
  { weights }: CompressionReport,
  { warnings }: Evaluation,
) {
  return { job: id, recipe, weights, warnings };
}

function sizeTelemetry(
  { originalBytes, resultBytes, weights }: CompressionReport,
  predicted: boolean,
) {
  const quantized = weights.filter(({ form }) => form !== null);
  return {
    size: { originalBytes, resultBytes, ratio: resultBytes / originalBytes, predicted },
    weights: {
      total: weights.length,
      quantized: quantized.length,
      quantizedBytes: quantized.reduce((sum, weight) => sum + weight.originalBytes, 0),
    },
  };
}
