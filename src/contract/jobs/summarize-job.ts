import { accuracyBasis, latencyObstacle, sqnrObstacle } from "./comparability.ts";
import { hasFailedGate } from "./gate.ts";
import type { Job } from "./job.ts";
import type { JobSummary } from "./job-summary.ts";
import type { LatencyRatio } from "./latency.ts";
import type { Telemetry } from "./telemetry.ts";

export function summarizeJob(whole: Job): JobSummary {
  const { model, recipe: used, gates, ...rest } = whole;
  const { id, kind, name, status, statusReason, statusMessage, batchId, target, dryRun } = rest;
  const { labels, createdBy, telemetry: measured } = rest;
  const { createdAt, updatedAt, startedAt, finishedAt } = rest;
  const identity = { id, kind, name, batchId, target, dryRun, labels };
  const progress = { status, statusReason, statusMessage };
  const summary: JobSummary = {
    ...identity,
    ...progress,
    createdAt,
    updatedAt,
    startedAt,
    finishedAt,
    model: model.name,
    scheme: used.scheme,
    granularity: used.granularity,
    blockSize: used.blockSize,
    progress: measured.progress,
    gatesFailed: hasFailedGate(gates),
    warnings: measured.warnings.length,
    figures: listFigures(measured),
    gates,
    baseline: summarizeBaseline(whole),
  };
  if (createdBy !== undefined) summary.createdBy = createdBy;
  if (measured.accuracy) summary.accuracyBasis = accuracyBasis(measured.accuracy);
  return summary;
}

function listFigures({ size, accuracy, latency }: Telemetry): JobSummary["figures"] {
  return {
    originalBytes: size?.originalBytes ?? null,
    resultBytes: size?.resultBytes ?? null,
    sizeRatio: size?.ratio ?? null,
    sqnrDb: accuracy?.sqnrDb ?? null,
    cosine: accuracy?.cosine ?? null,
    ...listLatencyFigures(latency),
  };
}

function summarizeBaseline({ telemetry: measured, baseline }: Job): JobSummary["baseline"] {
  if (!baseline) return null;
  const { jobId: measuredBy, sha, branch, size, accuracy, latency } = baseline;
  const isAccuracyComparable = sqnrObstacle(measured, baseline) === undefined;
  const isLatencyComparable = latencyObstacle(measured, baseline) === undefined;
  return {
    jobId: measuredBy,
    sha,
    branch,
    resultBytes: size?.resultBytes ?? null,
    sqnrDb: (isAccuracyComparable ? accuracy?.sqnrDb : undefined) ?? null,
    latencyMs: (isLatencyComparable ? latency?.result.p50Ms : undefined) ?? null,
    ...listRatioFigures(measured.latency?.baseline),
  };
}

function listLatencyFigures(latency: Telemetry["latency"]) {
  return { ...listRatioFigures(latency), latencyMs: latency?.result.p50Ms ?? null };
}

function listRatioFigures(measured: LatencyRatio | undefined) {
  const { ratio = null, ratioLow = null, ratioHigh = null } = measured ?? {};
  return { latencyRatio: ratio, latencyRatioLow: ratioLow, latencyRatioHigh: ratioHigh };
}
