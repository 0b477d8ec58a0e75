import { writeFile } from "node:fs/promises";
import path from "node:path";
import { addMeasured, evaluateResult, type Evaluation } from "./evaluate-result.ts";
import { compareWithBaseline } from "./compare-with-baseline.ts";
import type { JobInputs } from "./fetch-inputs.ts";
import type { JobContext } from "./job-context.ts";
import { cutPipeline } from "./plan-model.ts";
import { writeArchive, writeLanguageFiles } from "./language-result.ts";
import { toJobError } from "./to-job-error.ts";
import type { JobError } from "../contract/errors.ts";
import type { Artifact } from "../contract/jobs/artifact.ts";
import { formatRatio, type Latency, type LatencyRatio } from "../contract/jobs/latency.ts";
import { redactRecipe } from "../contract/jobs/recipe-data.ts";
import type { ModelDiff } from "../contract/jobs/model-diff.ts";
import {
  type ModelGraph,
  modelGraphLimits,
  type ModelGraphPart,
} from "../contract/jobs/model-graph.ts";
import { type Accuracy, maxUnfusedNodes } from "../contract/jobs/telemetry.ts";
import { textLimits } from "../contract/limits.ts";
import { truncate } from "../contract/text/truncate.ts";
import { formatBytes } from "../contract/text/format-bytes.ts";
import { formatCount } from "../contract/text/format-count.ts";
import { replaceHiddenCharacters } from "../contract/text/hidden-characters.ts";
import type { CompressionReport } from "../engine/compression-report.ts";
import { describeOriginal } from "../engine/describe-original.ts";
import { type ComparedResult, compareResult } from "../engine/diff/compare-result.ts";
import { inferGraphTypes } from "../engine/infer-graph-types.ts";
import { isCheckpoint } from "../engine/language/open-language-model.ts";
import { errorMessage } from "../log/error-message.ts";

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
  if (report.choice !== undefined) reporter.log(report.choice);
  for (const { message } of report.warnings) reporter.log(`Warning: ${message}`);
  reporter.telemetry(evaluation);
  const onMeasured = (measured: Partial<Evaluation>) => {
    evaluation = addMeasured(evaluation, measured);
    reporter.telemetry(evaluation);
  };
  const { path: modelPath, sha256 } = inputs.model;
  const { executionProvider } = assignment.target;
  const beside = dryRun
    ? []
    : await writeLanguageFiles(modelPath, executionProvider, context.outputDirectory);
  const files = dryRun ? [] : await publishFiles(context, [...report.files, ...beside]);
  const differing = dryRun ? undefined : await compareWithOriginal(context, inputs, report);
  const { changes, graph: resultGraph } = differing ?? {};
  const model = { bytes: report.originalBytes, sha256 };
  const { maxModelBytes } = assignment.limits;
  const graph = await describeOriginal(modelPath, executionProvider, report.weights, maxModelBytes);
  const made = { report, model, files, changes, graph, resultGraph };
  if (!dryRun) {
    try {
      await examineResult(context, inputs, { report, onMeasured });
    } catch (error) {
      await publishFailure(context, { ...made, evaluation, error: toJobError(error) });
      throw error;
    }
  }
  const compared = await compareWithBaseline(context, inputs);
  const typed = await addTypes(context, modelPath, graph);
  const documents = listDocuments(context, { ...made, graph: typed, evaluation });
  await publishDocuments(context, [...documents, ...listComparisons(compared)]);
  if (!dryRun && isCheckpoint(modelPath)) {
    const names = [...files, ...documents].map(({ name }) => name);
    const archive = await writeArchive(context.outputDirectory, names, context.signal);
    await publishFiles(context, [archive]);
  }
  if (!dryRun) {
    const { seconds, ...usage } = await context.usage.read();
    reporter.telemetry({ usage: assignment.part === null ? { ...usage, seconds } : usage });
  }
  for (const line of summarizeResult(report, evaluation)) reporter.log(line);
}

/** How the result differs from its original; that they cannot be compared costs nothing else. */
async function compareWithOriginal(
  { assignment, outputDirectory, reporter, signal }: JobContext,
  { model: { path: originalPath } }: JobInputs,
  { files: [file], weights }: CompressionReport,
): Promise<ComparedResult | undefined> {
  if (file === undefined) throw new TypeError("A result has no files");
  const resultPath = path.join(outputDirectory, file.name);
  const { executionProvider: provider } = assignment.target;
  const { maxModelBytes } = assignment.limits;
  const compared = { originalPath, provider, resultPath, weights, maxModelBytes, signal };
  try {
    return await compareResult(compared);
  } catch (error) {
    signal.throwIfAborted();
    reporter.log(`The result was not compared with its original: ${errorMessage(error)}`);
    return undefined;
  }
}

/** The original's graph, with the types of all its values where the runtime is asked for outputs. */
async function addTypes(
  { assignment, directory: scratchDirectory, signal }: JobContext,
  modelPath: string,
  graph: ModelGraphPart,
): Promise<ModelGraphPart> {
  if (assignment.dryRun || assignment.recipe.evaluation.level !== "outputs") return graph;
  const { executionProvider } = assignment.target;
  const options = { scratchDirectory, threads: 1, signal };
  return inferGraphTypes(graph, modelPath, executionProvider, options);
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
  /** The original's ONNX file, and the bytes of all its files. */
  readonly model: { readonly bytes: number; readonly sha256: string };
  /** Those of the result. */
  readonly files: readonly Artifact[];
  /** How the result differs from the original; undefined where nothing was written. */
  readonly changes: ModelDiff | undefined;
  /** The original's. */
  readonly graph: ModelGraphPart;
  readonly resultGraph: ModelGraphPart | undefined;
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
  { assignment: { id, kind, target, ...assignment } }: JobContext,
  { report, model, files, changes, graph, resultGraph, evaluation, error }: ReportContent,
) {
  const { weights, choice, restoredAtLoad, halved } = report;
  const { calibration, search, qdq } = report;
  const recipe = redactRecipe(assignment.recipe);
  const foundRecipe = report.foundRecipe && redactRecipe(report.foundRecipe);
  const asked = { job: id, kind, model, target, recipe, foundRecipe, search };
  const work = { ...asked, calibration, choice, qdq, restoredAtLoad, halved, files };
  const { interface: io } = report;
  const content = { ...work, interface: io, weights, changes, ...evaluation, error };
  const text = `${JSON.stringify(content, null, 2)}\n`;
  const graphs = JSON.stringify(listGraphs(weights, graph, resultGraph));
  const documents = [
    { name: "graph.json", kind: "graph", content: graphs },
    { name: "report.json", kind: "report", content: text },
  ] as const;
  if (foundRecipe === undefined) return documents;
  const found = `${JSON.stringify(foundRecipe, null, 2)}\n`;
  return [...documents, { name: "recipe.json", kind: "recipe", content: found } as const];
}

function listComparisons(compared: Awaited<ReturnType<typeof compareWithBaseline>>) {
  if (compared === undefined) return [];
  const { description, diff } = compared;
  const content = JSON.stringify(description);
  const described = { name: "description.json", kind: "description", content } as const;
  if (diff === undefined) return [described];
  return [described, { name: "diff.json", kind: "diff", content: JSON.stringify(diff) } as const];
}

function sizeTelemetry(
  { originalBytes, resultBytes, weights, choice, calibration, search, qdq }: CompressionReport,
  predicted: boolean,
) {
  const quantized = weights.filter(({ form }) => form !== null);
  return {
    size: { originalBytes, resultBytes, ratio: resultBytes / originalBytes, predicted },
    weights: {
      total: weights.length,
      quantized: quantized.length,
      quantizedBytes: quantized.reduce((sum, weight) => sum + weight.originalBytes, 0),
      choice,
    },
    ...(calibration && { calibration }),
    ...(qdq && { qdq: { ...qdq, unfusedNodes: qdq.unfused.length, unfused: shortenUnfused(qdq) } }),
    ...(search && { search }),
  };
}

function shortenUnfused({ unfused }: NonNullable<CompressionReport["qdq"]>) {
  return unfused.slice(0, maxUnfusedNodes).map(({ node, operator, reason }) => ({
    node: shownText(node),
    operator: shownText(operator),
    reason: truncate(replaceHiddenCharacters(reason), textLimits.telemetryWarning),
  }));
}

type PublishContext = Pick<
  JobContext,
  "blobs" | "outputDirectory" | "reporter" | "runStage" | "signal"
>;

/** Stores files of the result, reports each as soon as it is stored, and gives them. */
async function publishFiles(
  { blobs, outputDirectory, reporter, runStage, signal }: PublishContext,
  files: readonly Pick<Artifact, "name" | "kind" | "bytes">[],
): Promise<Artifact[]> {
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  return runStage("publish", async ({ log, onProgress }) => {
    const published: Artifact[] = [];
    let done = 0;
    for (const { name, kind, bytes } of files) {
      const blob = await blobs.writeFile(path.join(outputDirectory, name), { signal });
      const artifact = { name, kind, ...blob };
      published.push(artifact);
      reporter.artifact(artifact);
      log(`${name}: ${formatBytes(bytes)}, SHA-256 ${blob.sha256}`);
      done += bytes;
      onProgress(done / total, `Storing: ${formatBytes(done)} of ${formatBytes(total)}`);
    }
    return published;
  });
}

/** Stores and reports files of JSON that say what was done. */
async function publishDocuments(
  { blobs, outputDirectory, reporter, runStage, signal }: PublishContext,
  documents: readonly (Pick<Artifact, "name" | "kind"> & { readonly content: string })[],
): Promise<void> {
  await runStage("publish", async () => {
    for (const { name, kind, content } of documents) {
      const file = path.join(outputDirectory, name);
      await writeFile(file, content);
      const blob = await blobs.writeFile(file, { signal });
      reporter.artifact({ name, kind, ...blob });
    }
  });
}

/** The figures of a job, for the end of its log. */
export function summarizeResult(
  { originalBytes, resultBytes, weights, calibration, qdq }: CompressionReport,
  evaluation: Evaluation,
): string[] {
  const { accuracy, latency, memory } = evaluation;
  const changed = weights.filter(({ form }) => form !== null).length;
  const ratio = (resultBytes / originalBytes).toFixed(3);
  const lines = [
    `Size: ${formatBytes(originalBytes)} to ${formatBytes(resultBytes)}, ratio ${ratio}`,
    `Weights: ${changed} of ${weights.length} changed`,
  ];
  if (calibration) {
    const { fittedWeights, samples, data } = calibration;
    const fitted = formatCount(fittedWeights, "weight");
    const source = formatCount(samples, `${data} sample`);
    lines.push(`Calibration: ${fitted} fitted to ${source}`);
  }
  if (qdq) lines.push(`Integers: ${qdq.operators} operators in ${qdq.runtime}`);
  if (accuracy) lines.push(accuracyLine(accuracy));
  if (accuracy?.language) lines.push(languageLine(accuracy.language));
  if (latency) lines.push(...latencyLines(latency));
  if (memory?.originalGpuBytes !== undefined && memory.resultGpuBytes !== undefined) {
    const [before, after] = [memory.originalGpuBytes, memory.resultGpuBytes].map(formatBytes);
    lines.push(`GPU memory: ${before} to ${after}`);
  }
  return lines;
}

/** The highest ratio, and that of each input shape where there are several. */
function latencyLines(latency: Latency): string[] {
  const { original, result, shapes = [] } = latency;
  const line = (what: string, before: number, after: number, ratio: LatencyRatio) =>
    `${what}: median ${before.toFixed(2)} ms to ${after.toFixed(2)} ms, ratio ${formatRatio(ratio)}`;
  return [
    line("Latency", original.p50Ms, result.p50Ms, latency),
    ...shapes.map((shape) =>
      line(`Latency of ${shape.inputs}`, shape.originalP50Ms, shape.resultP50Ms, shape),
    ),
  ];
}

function accuracyLine({ level, samples, data, sqnrDb, cosine }: Accuracy): string {
  const basis =
    level === "weights"
      ? "worst weight"
      : `worst output on ${formatCount(samples, `${data} sample`)}`;
  return `Accuracy: SQNR ${sqnrDb.toFixed(1)} dB, cosine ${cosine.toFixed(5)}, ${basis}`;
}

function languageLine(language: NonNullable<Accuracy["language"]>): string {
  const { originalPerplexity, resultPerplexity, perplexityRatio, klDivergence, tokens } = language;
  const [original, result] = [originalPerplexity.toFixed(2), resultPerplexity.toFixed(2)];
  const perplexity = `perplexity ${original} to ${result}, ratio ${perplexityRatio.toFixed(3)}`;
  return `Language: ${perplexity}, KL divergence ${klDivergence.toFixed(4)} nats, ${tokens} tokens`;
}

/** Content of `graph.json`. */
function listGraphs(
  weights: CompressionReport["weights"],
  graph: ModelGraphPart,
  result: ModelGraphPart | undefined,
): ModelGraph {
  return {
    graph,
    ...(result && { result: takeTypes(result, listTypes(graph)) }),
    weights: weights.map(({ name, originalBytes, resultBytes, form, reason, error }) => ({
      name: shownText(name),
      originalBytes,
      resultBytes,
      form,
      reason,
      sqnrDb: error?.sqnrDb ?? null,
    })),
  };
}

/** The types of a graph's values, by their names. */
function listTypes(graph: ModelGraphPart): ReadonlyMap<string, string> {
  return new Map(graph.values.flatMap(({ name, type }) => (type === null ? [] : [[name, type]])));
}

/** The result has most of the original's values: what their types are was found out there. */
function takeTypes(graph: ModelGraphPart, types: ReadonlyMap<string, string>): ModelGraphPart {
  const values = graph.values.map(({ name, type }) => ({
    name,
    type: type ?? types.get(name) ?? null,
  }));
  return { ...graph, values };
}

function shownText(name: string): string {
  return truncate(replaceHiddenCharacters(name), modelGraphLimits.text);
}
