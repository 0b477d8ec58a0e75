import { mergePatch } from "./custom-resources.ts";
import type { SyncContext } from "./sync-context.ts";
import { statusLimits } from "../../contract/custom-resources/api-group.ts";
import type {
  CompressionJobStatus,
  JobReport,
} from "../../contract/custom-resources/compression-job.ts";
import type { GateResult } from "../../contract/jobs/gate.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import type { Telemetry } from "../../contract/jobs/telemetry.ts";
import { textLimits } from "../../contract/limits.ts";
import { truncate } from "../../contract/text/truncate.ts";
import type { ReconcileRun, Requeue } from "../../controller-runtime/controller.ts";
import type { Stored } from "../../kubernetes/resources.ts";
import { type CompressionJobObject, compressionJobs } from "../../resources/custom-resources.ts";

/** The status of a resource, with the default of the API server. */
export function resourceStatus({ status }: CompressionJobObject): CompressionJobStatus {
  return status ?? { status: "Pending" };
}

/** Whether a worker or the service has something to report; the operator says what a job waits for. */
export function hasReport(
  { status }: Job,
  { report }: CompressionJobStatus,
  allRecorded: boolean,
): boolean {
  if (status === "Pending") return report !== undefined;
  return allRecorded || (status !== "Cancelling" && status !== "Cancelled");
}

/**
 * What a resource's status says of the record of its job, within the limits of the resource. It
 * gets figures and files when the job ends: while it works they change with every report. Only the
 * last of several pods is sized before by what the first one forecast.
 */
export function reportFromJob(job: Job, allRecorded: boolean): JobReport {
  const { startedAt, transitions, error, recipe, telemetry } = job;
  const { forecast } = recipe.parallelism > 1 ? telemetry : {};
  return {
    transitions: lastAttempt(transitions).map(limitTransition),
    startedAt: startedAt ?? undefined,
    error: error ? { ...error, message: limitMessage(error.message) } : undefined,
    ...(forecast && { telemetry: { forecast } }),
    ...(isTerminal(job.status) && resultFields(job)),
    ...(allRecorded && { recorded: true }),
  };
}

function resultFields({ telemetry, artifacts, gates }: Job) {
  return {
    progress: `${Math.floor(telemetry.progress.fraction * 100)}%`,
    ratio: telemetry.size && Math.min(telemetry.size.ratio, largestShownRatio).toFixed(2),
    telemetry: summarizeTelemetry(telemetry),
    artifacts: artifacts.slice(0, statusLimits.artifacts),
    gates: gates.slice(0, statusLimits.gates).map(summarizeGate),
  };
}

/** With two decimals as long as the field may be. */
const largestShownRatio = 99_999;

/** A merge patch leaves out null, also in the objects of a list. */
function summarizeGate({ gate, limit, level, passed, note, actual, baseline }: GateResult) {
  return {
    gate,
    limit,
    level,
    passed,
    ...(note !== undefined && { note }),
    ...(actual !== null && { actual }),
    ...(baseline !== null && { baseline }),
  };
}

/** The last time that the job waited, and what came after it. */
function lastAttempt(transitions: Job["transitions"]): Job["transitions"] {
  return transitions.slice(transitions.findLastIndex(({ status }) => status === "Pending"));
}

/** A transition without a message lacks the field: undefined would compare as a change. */
function limitTransition(transition: Job["transitions"][number]) {
  const { message } = transition;
  return message === undefined ? transition : { ...transition, message: limitMessage(message) };
}

function summarizeTelemetry(telemetry: Telemetry): JobReport["telemetry"] {
  const {
    accuracy,
    calibration: _left,
    generated: _generated,
    qdq: _qdq,
    search: _search,
    warnings,
    modelDiff: _diff,
    ...figures
  } = telemetry;
  const { outputs: _, notExercised: _notExercised, ...worst } = accuracy ?? { outputs: [] };
  return {
    ...figures,
    accuracy: "level" in worst ? worst : undefined,
    warnings: warnings.slice(0, statusLimits.warnings).map(({ code, message }) => ({
      code: truncate(code, textLimits.reason),
      message: truncate(message, textLimits.telemetryWarning),
    })),
  };
}

export function limitMessage(message: string): string {
  return truncate(message, textLimits.statusMessage);
}

/** Faster changes are written together, the first ones of a job too. */
const reportIntervalMs = 1_000;

/** Writes the report on a job if it differs; returns when to retry if that would be too soon. */
export async function writeReport(
  { client, jobs, reportedAt }: SyncContext,
  resource: Stored<CompressionJobObject>,
  report: JobReport,
  run: ReconcileRun,
): Promise<Requeue | undefined> {
  const { uid, name, namespace, resourceVersion } = resource.metadata;
  const patch = mergePatch(resource.status?.report ?? {}, report);
  if (patch === undefined) return undefined;
  const now = performance.now();
  const last = reportedAt.get(uid) ?? now;
  reportedAt.set(uid, last);
  const hasEnded = report.transitions?.some(({ status }) => isTerminal(status)) ?? false;
  const isEnd = hasEnded || report.recorded === true;
  const waitMs = last + reportIntervalMs - now;
  if (waitMs > 0 && !isEnd) return { requeueAfterMs: waitMs };
  const options = { subresource: "status", resourceVersion } as const;
  const written = await client
    .inNamespace(namespace)
    .patch(compressionJobs, name, { status: { report: patch } }, options);
  reportedAt.set(uid, performance.now());
  run.expectWrite(jobs, written);
  return undefined;
}
