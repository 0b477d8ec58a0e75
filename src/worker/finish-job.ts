import type { JobError } from "../contract/errors.ts";
import type { CompressionReport } from "../engine/compression-report.ts";
import { errorMessage } from "../log/error-message.ts";
import { addMeasured, type Evaluation } from "./add-measured.ts";
import { cutPipeline } from "./cut-pipeline.ts";
import { describeGraph } from "./describe-graph.ts";
import { evaluateResult } from "./evaluate-result.ts";
import type { JobInputs } from "./fetch-inputs.ts";
import type { JobContext } from "./job-context.ts";
import { publishDocuments, publishFiles } from "./publish-files.ts";
import { summarizeResult } from "./summarize-result.ts";
import { toJobError } from "./to-job-error.ts";

/**
 * The work after the compression: stores the result, cuts the pipeline, evaluates, and stores the
 * report. What is stored and measured when a later step fails is reported all the same.
 */
export async function finishJob(
  context: JobContext,
  inputs: JobInputs,
  report: CompressionReport,
): Promise<void> {
  const { assignment, reporter } = context;
  const { dryRun } = assignment;
  reporter.model(report.originalBytes, inputs.model.sha256);
  reporter.telemetry(sizeTelemetry(report, dryRun));
  let evaluation: Evaluation = { warnings: [...report.warnings] };
  for (const { message } of report.warnings) reporter.log(`Warning: ${message}`);
  reporter.telemetry(evaluation);
  const onMeasured = (measured: Partial<Evaluation>) => {
    evaluation = addMeasured(evaluation, measured);
    reporter.telemetry(evaluation);
  };
  if (!dryRun) {
    await publishFiles(context, report.files);
    try {
      await examineResult(context, inputs, { report, onMeasured });
    } catch (error) {
      await publishFailure(context, { report, evaluation, error: toJobError(error) });
      throw error;
    }
  }
  await publishDocuments(context, listDocuments(context, { report, evaluation }));
  for (const line of summarizeResult(report, evaluation)) reporter.log(line);
}

interface Examination {
  readonly report: CompressionReport;
  readonly onMeasured: (measured: Partial<Evaluation>) => void;
}

async function examineResult(
  context: JobContext,
  inputs: JobInputs,
  { report, onMeasured }: Examination,
): Promise<void> {
  const { assignment } = context;
  const stageFiles = await cutPipeline(assignment, report, context);
  if (stageFiles.length > 0) await publishFiles(context, stageFiles);
  await context.runStage("evaluate", async (stage) =>
    evaluateResult({ ...context, inputs, report, stage, onMeasured }),
  );
}

interface ReportContent {
  readonly report: CompressionReport;
  readonly evaluation: Evaluation;
  readonly error?: JobError;
}

/** The job's own error counts: one of storing the report is logged only. */
async function publishFailure(context: JobContext, content: ReportContent): Promise<void> {
  context.signal.throwIfAborted();
  try {
    await publishDocuments(context, listDocuments(context, content));
  } catch (error) {
    context.reporter.log(`The report could not be stored: ${errorMessage(error)}`, "stderr");
  }
}

function listDocuments(
  { assignment: { id, recipe } }: JobContext,
  { report, evaluation, error }: ReportContent,
) {
  const content = { job: id, recipe, weights: report.weights, ...evaluation, error };
  const text = `${JSON.stringify(content, null, 2)}\n`;
  const graph = JSON.stringify(describeGraph(report));
  return [
    { name: "graph.json", kind: "graph", content: graph },
    { name: "report.json", kind: "report", content: text },
  ] as const;
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
