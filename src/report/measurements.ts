import type { Section } from "./compose-sections.ts";
import { inlineCode, tableHead, tableRow } from "./markdown.ts";
import { comparableAccuracy, describeLatencyChange, notTimed } from "./figures.ts";
import { figureNames, sampleNames } from "../contract/jobs/figure-names.ts";
import type { Job } from "../contract/jobs/job.ts";
import { formatRatio, type Latency } from "../contract/jobs/latency.ts";
import { formatBytes } from "../contract/text/format-bytes.ts";
import {
  formatChange,
  formatDecibels,
  formatPercent,
  formatTimes,
} from "../contract/text/format-figure.ts";

const columns = ["figure", "original", "result", "ratio", "baseline", "change"];

/** The figures of the original and of the result, beside the baseline where there is one. */
export function measurementTable(job: Job): Section {
  const rows = [
    ...sizeRows(job),
    ...latencyRows(job),
    ...accuracyRows(job),
    ...memoryRows(job),
    ...weightRows(job),
  ];
  return { head: tableHead(columns), rows: rows.map((cells) => tableRow(padCells(cells))) };
}

function sizeRows({ telemetry: { size }, baseline }: Job): string[][] {
  if (!size) return [];
  const before = baseline?.size?.resultBytes;
  const cells = [
    figureNames.size,
    formatBytes(size.originalBytes),
    formatBytes(size.resultBytes),
    size.ratio.toFixed(3),
  ];
  if (before === undefined) return [cells];
  const change = formatChange(size.resultBytes / before - 1, formatPercent);
  return [[...cells, formatBytes(before), change ?? ""]];
}

function latencyRows(job: Job): string[][] {
  const { latency } = job.telemetry;
  if (!latency) return [];
  const percentiles = (["p50Ms", "p95Ms", "p99Ms"] as const).flatMap((figure) => {
    const [original, result] = [latency.original[figure], latency.result[figure]];
    if (original === undefined || result === undefined) return [];
    const name = `latency ${figure.replace("Ms", "")}, ms`;
    const ratio = figure === "p50Ms" ? formatRatio(latency) : formatTimes(result / original);
    const cells = [name, original.toFixed(2), result.toFixed(2), ratio];
    return [figure === "p50Ms" ? [...cells, ...compareMedian(job)] : cells];
  });
  return [...percentiles, ...shapeRows(latency)];
}

/** The baseline's median as this run found it, and the change since. */
function compareMedian({ telemetry: { latency }, baseline }: Job): string[] {
  if (!baseline || !latency) return [];
  const change = describeLatencyChange(latency.baseline);
  if (!latency.baseline || change === undefined) return [notTimed];
  return [(latency.result.p50Ms / latency.baseline.ratio).toFixed(2), change];
}

function shapeRows({ shapes = [] }: Latency): string[][] {
  return shapes.map((shape) => [
    `latency p50 of ${inlineCode(shape.inputs)}, ms`,
    shape.originalP50Ms.toFixed(2),
    shape.resultP50Ms.toFixed(2),
    formatRatio(shape),
  ]);
}

function accuracyRows(job: Job): string[][] {
  const { accuracy } = job.telemetry;
  if (!accuracy) return [];
  const worst = [figureNames.accuracy, "", formatDecibels(accuracy.sqnrDb), ""];
  const before = comparableAccuracy(job);
  if (before) {
    const change = formatChange(accuracy.sqnrDb - before.sqnrDb, formatDecibels);
    worst.push(formatDecibels(before.sqnrDb), change ?? "");
  }
  const top1 = accuracy.language === undefined ? figureNames.top1 : figureNames.nextToken;
  const outputs = accuracy.outputs.flatMap((output) => outputRows(output, top1));
  return [worst, ...languageRows(accuracy.language), ...outputs];
}

type MeasuredAccuracy = NonNullable<Job["telemetry"]["accuracy"]>;

function languageRows(language: MeasuredAccuracy["language"]): string[][] {
  if (language === undefined) return [];
  const { originalPerplexity, resultPerplexity, perplexityRatio, klDivergence } = language;
  const perplexities = [originalPerplexity, resultPerplexity].map((figure) => figure.toFixed(2));
  return [
    [figureNames.perplexity, ...perplexities, perplexityRatio.toFixed(3)],
    [figureNames.klDivergence, "", klDivergence.toFixed(4)],
  ];
}

function outputRows(
  { name, sqnrDb, cosine, top1Agreement }: MeasuredAccuracy["outputs"][number],
  top1: string,
): string[][] {
  const output = inlineCode(name);
  const rows = [
    [`${figureNames.accuracy} of ${output}`, "", formatDecibels(sqnrDb)],
    [`${figureNames.cosine} of ${output}`, "", cosine.toFixed(5)],
  ];
  if (top1Agreement !== null) {
    rows.push([`${top1} of ${output}`, "", formatPercent(top1Agreement)]);
  }
  return rows;
}

function memoryRows({ telemetry: { memory } }: Job): string[][] {
  const pairs = [
    [figureNames.memory, memory?.originalPeakBytes, memory?.resultPeakBytes],
    [figureNames.gpuMemory, memory?.originalGpuBytes, memory?.resultGpuBytes],
  ] as const;
  return pairs.flatMap(([name, ...figures]) => {
    if (figures.every((bytes) => bytes === undefined)) return [];
    return [[name, ...figures.map((bytes) => (bytes === undefined ? "" : formatBytes(bytes)))]];
  });
}

function weightRows({ telemetry: { weights } }: Job): string[][] {
  return weights
    ? [[figureNames.weights, "", `${weights.quantized} of ${weights.total} changed`]]
    : [];
}

function padCells(cells: readonly string[]): string[] {
  return columns.map((_, i) => cells[i] ?? "");
}

type Telemetry = Job["telemetry"];

/** What the figures of a job are compared with, and how they were measured. */
export function measurementNotes({ telemetry, baseline }: Job): Section[] {
  const { device, accuracy, stageSeconds } = telemetry;
  const notes = [
    baseline && `Compared with ${inlineCode(`${baseline.branch} at ${baseline.sha.slice(0, 7)}`)}.`,
    device && deviceNote(device),
    accuracy && samplesNote(accuracy),
    stageSeconds && stagesNote(stageSeconds),
  ].flatMap((note) => note ?? []);
  return notes.length === 0 ? [] : [{ head: notes.join(" "), rows: [] }];
}

function deviceNote(device: NonNullable<Telemetry["device"]>): string {
  const { name, threads, executionProvider, runtime } = device;
  const software = inlineCode(`${executionProvider}, ${runtime}`);
  return `Measured on ${inlineCode(name)}, ${threads} threads, ${software}.`;
}

function samplesNote({ level, samples, data }: NonNullable<Telemetry["accuracy"]>): string {
  if (level === "weights") return "Accuracy of the worst weight.";
  return `Accuracy on ${samples} ${sampleNames[data]}.`;
}

function stagesNote(stageSeconds: NonNullable<Telemetry["stageSeconds"]>): string {
  const stages = Object.entries(stageSeconds).map(([stage, seconds = 0]) => {
    return `${stage} ${seconds.toFixed(1)}`;
  });
  return `Seconds: ${stages.join(", ")}.`;
}
