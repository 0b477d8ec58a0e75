import { mergePatch } from "./custom-resources.ts";
import { findInterruption } from "./events-from-status.ts";
import type { SyncContext } from "./sync-context.ts";
import { statusLimits } from "../../contract/custom-resources/api-group.ts";
import type { CompressionJobStatus } from "../../contract/custom-resources/compression-job.ts";
import { type Condition, conditionTypes } from "../../contract/custom-resources/condition.ts";
import type { EventReason } from "../../contract/custom-resources/event-reasons.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { isTerminal, type JobStatus, leadsTo } from "../../contract/jobs/status.ts";
import type { Telemetry } from "../../contract/jobs/telemetry.ts";
import { textLimits } from "../../contract/limits.ts";
import { truncate } from "../../contract/text/bounded-text.ts";
import type { ReconcileRun, Requeue } from "../../controller-runtime/controller.ts";
import type { Stored } from "../../kubernetes/resources.ts";
import { type CompressionJobObject, compressionJobs } from "../../resources/custom-resources.ts";
import { hasTrueCondition } from "../../resources/has-true-condition.ts";
import { lifecycleConditions } from "../../resources/lifecycle-conditions.ts";
import { withCondition } from "../../resources/with-condition.ts";

interface DesiredStatusInput {
  readonly job: Job;
  readonly resource: Stored<CompressionJobObject>;
  /** Whether all logs and results of the job are in the records. */
  readonly allRecorded: boolean;
  readonly now: Date;
}

type NewCondition = Omit<Condition, "lastTransitionTime" | "observedGeneration">;

const operatorOwnedStatuses: ReadonlySet<JobStatus> = new Set([
  "Pending",
  "Cancelling",
  "Cancelled",
]);
const statusesWithoutTelemetry: ReadonlySet<JobStatus> = new Set(["Pending", "Cancelling"]);

const recordedCondition: NewCondition = {
  type: conditionTypes.recorded,
  status: "True",
  reason: "Recorded" satisfies EventReason,
  message: "Logs and result are in the service's records",
};

/** The status of a resource, with the default of the API server. */
export function resourceStatus({ status }: CompressionJobObject): CompressionJobStatus {
  return status ?? { status: "Pending" };
}

export function hasRecordedCondition({ conditions }: CompressionJobStatus): boolean {
  return hasTrueCondition(conditions, conditionTypes.recorded);
}

/**
 * The status of a resource according to the record of its job. The operator reports why a job waits
 * and that it is cancelled; a terminal status stays, whatever the record says.
 */
export function desiredStatus(input: DesiredStatusInput): CompressionJobStatus {
  const { job, resource, allRecorded } = input;
  const before = resourceStatus(resource);
  const isInterrupted = findInterruption(before, job) !== undefined;
  const takesRecord = !isInterrupted && isReportedByService(job, before.status);
  if (!takesRecord && !allRecorded) return before;
  return withConditions(takesRecord ? { ...before, ...statusFieldsFromJob(job) } : before, input);
}

/** A status with the conditions that follow from it. */
export function withConditions(
  status: CompressionJobStatus,
  { resource, allRecorded, now }: Omit<DesiredStatusInput, "job">,
): CompressionJobStatus {
  const observed = { observedGeneration: resource.metadata.generation };
  const conditions = newConditions(status, allRecorded).reduce(
    (all, condition) => withCondition(all, { ...condition, ...observed }, now),
    status.conditions ?? [],
  );
  return { ...status, ...observed, conditions };
}

function isReportedByService({ kind, status }: Job, before: JobStatus): boolean {
  if (before === status) return !statusesWithoutTelemetry.has(status);
  return !operatorOwnedStatuses.has(status) && leadsTo(kind, before, status);
}

function newConditions(
  { status, statusMessage = "", conditions: before }: CompressionJobStatus,
  allRecorded: boolean,
): NewCondition[] {
  // The message of a job that goes on changes with its progress: conditions do not have it.
  const message = isTerminal(status) ? statusMessage : "";
  const conditions = lifecycleConditions(status, message, before);
  return allRecorded ? [...conditions, recordedCondition] : conditions;
}

type StatusFields = Omit<CompressionJobStatus, "conditions" | "observedGeneration">;

/**
 * The fields of a resource's status that follow from the job, within the limits of the resource.
 * It gets figures and files when the job ends: while it works they change with every report.
 */
function statusFieldsFromJob(job: Job): StatusFields {
  const { error, startedAt, finishedAt } = job;
  return {
    jobId: job.id,
    status: job.status,
    statusReason: truncate(job.statusReason, textLimits.reason),
    statusMessage: limitMessage(job.statusMessage),
    startedAt: startedAt ?? undefined,
    finishedAt: finishedAt ?? undefined,
    transitions: job.transitions.slice(-statusLimits.transitions).map(limitTransition),
    error: error ? { ...error, message: limitMessage(error.message) } : undefined,
    ...resultFields(job),
  };
}

type ResultFields = Pick<StatusFields, "progress" | "ratio" | "telemetry" | "artifacts" | "gates">;

const noResult: ResultFields = {
  progress: undefined,
  ratio: undefined,
  telemetry: undefined,
  artifacts: undefined,
  gates: undefined,
};

function resultFields({ status, telemetry, artifacts, gates }: Job): ResultFields {
  if (!isTerminal(status)) return noResult;
  return {
    progress: `${Math.floor(telemetry.progress.fraction * 100)}%`,
    ratio: telemetry.size?.ratio.toFixed(2),
    telemetry: summarizeTelemetry(telemetry),
    artifacts: artifacts.slice(0, statusLimits.artifacts),
    gates: gates.slice(0, statusLimits.gates),
  };
}

/** A transition without a message lacks the field: undefined would compare as a change. */
function limitTransition(transition: Job["transitions"][number]) {
  const { message } = transition;
  return message === undefined ? transition : { ...transition, message: limitMessage(message) };
}

function summarizeTelemetry(telemetry: Telemetry): StatusFields["telemetry"] {
  const { accuracy, warnings, ...figures } = telemetry;
  const { outputs: _, ...worst } = accuracy ?? { outputs: [] };
  return {
    ...figures,
    accuracy: "level" in worst ? worst : undefined,
    warnings: warnings.slice(0, statusLimits.warnings).map(({ code, message }) => ({
      code: truncate(code, textLimits.reason),
      message: truncate(message, textLimits.telemetryWarning),
    })),
  };
}

function limitMessage(message: string): string {
  return truncate(message, textLimits.statusMessage);
}

interface StatusWrite {
  readonly id: string;
  readonly resource: Stored<CompressionJobObject>;
  readonly status: CompressionJobStatus;
}

/** Faster changes are written together. */
const statusIntervalMs = 1_000;

/**
 * Writes the status of a resource if it differs; returns when to retry if that would be too soon.
 */
export async function patchResourceStatus(
  { client, jobs, statusWrittenAt }: SyncContext,
  { id, resource, status }: StatusWrite,
  run: ReconcileRun,
): Promise<Requeue | undefined> {
  const before = resourceStatus(resource);
  const patch = mergePatch(before, status);
  if (patch === undefined) return undefined;
  const sinceMs = performance.now() - (statusWrittenAt.get(id) ?? -Infinity);
  const intervalMs = isTerminal(status.status) ? 0 : statusIntervalMs;
  if (sinceMs < intervalMs) return { requeueAfterMs: intervalMs - sinceMs };
  const { name, namespace, resourceVersion } = resource.metadata;
  const options = { subresource: "status", resourceVersion } as const;
  const written = await client
    .inNamespace(namespace)
    .patch(compressionJobs, name, { status: patch }, options);
  statusWrittenAt.set(id, performance.now());
  run.expectWrite(jobs, written);
  return undefined;
}
