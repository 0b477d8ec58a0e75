import type { CompressionJobStatus } from "../../contract/compression-job.ts";
import { type Condition, conditionTypes } from "../../contract/condition.ts";
import { statusLimits } from "../../contract/resource-status.ts";
import type { Job } from "../../contract/job.ts";
import { isTerminal, type JobStatus, leadsTo } from "../../contract/status.ts";
import type { CompressionJobObject } from "../../resources/custom-resources.ts";
import type { Stored } from "../../kubernetes/resources.ts";
import { withCondition } from "../../resources/with-condition.ts";

interface DesiredStatusInput {
  readonly job: Job;
  readonly resource: Stored<CompressionJobObject>;
  /** Whether nothing of the job is left that is not in the records. */
  readonly allRecorded: boolean;
  readonly now: Date;
}

/** The status as the API server shows it where nobody has written one. */
export function resourceStatus({ status }: CompressionJobObject): CompressionJobStatus {
  return status ?? { status: "Pending" };
}

export function hasRecordedCondition({ conditions = [] }: CompressionJobStatus): boolean {
  return conditions.some(
    ({ type, status }) => type === conditionTypes.recorded && status === "True",
  );
}

/**
 * The status that a resource should have by the record of its job. What a job waits for, that it is stopped and that it was
 * stopped are the operator's to say; a status that is final stays, whatever the record says.
 */
export function desiredStatus({
  job,
  resource,
  allRecorded,
  now,
}: DesiredStatusInput): CompressionJobStatus {
  const before = resourceStatus(resource);
  const isSameStatus = before.status === job.status;
  const isTransition =
    !operatorOwnedStatuses.has(job.status) && leadsTo(job.kind, before.status, job.status);
  const takesRecord = isTransition || (isSameStatus && !statusesWithoutTelemetry.has(job.status));
  if (!takesRecord && !allRecorded) return before;
  const status = takesRecord ? { ...before, ...statusFieldsFromJob(job) } : before;
  const observed = { observedGeneration: resource.metadata.generation };
  const updates: Omit<Condition, "lastTransitionTime">[] = [];
  if (isTerminal(status.status)) {
    const message = status.statusMessage ?? "";
    updates.push({
      type: conditionTypes.finished,
      status: "True",
      reason: status.status,
      message,
      ...observed,
    });
  }
  if (allRecorded) updates.push({ ...recordedCondition, ...observed });
  const conditions = updates.reduce(
    (all, each) => withCondition(all, each, now),
    before.conditions ?? [],
  );
  return { ...status, ...observed, conditions };
}

const operatorOwnedStatuses: ReadonlySet<JobStatus> = new Set([
  "Pending",
  "Cancelling",
  "Cancelled",
]);
const statusesWithoutTelemetry: ReadonlySet<JobStatus> = new Set(["Pending", "Cancelling"]);

const recordedCondition = {
  type: conditionTypes.recorded,
  status: "True",
  reason: "Recorded",
  message: "Logs and result are in the service's records",
} as const;

function statusFieldsFromJob(
  job: Job,
): Omit<CompressionJobStatus, "conditions" | "observedGeneration"> {
  const { telemetry, error, startedAt, finishedAt } = job;
  const { accuracy, warnings, ...figures } = telemetry;
  const { outputs: _, ...worst } = accuracy ?? { outputs: [] };
  return {
    jobId: job.id,
    status: job.status,
    statusReason: truncateText(job.statusReason, 64),
    statusMessage: truncateText(job.statusMessage, maxStatusMessageLength),
    progress: `${Math.floor(telemetry.progress.fraction * 100)}%`,
    ratio: telemetry.size && telemetry.size.ratio.toFixed(2),
    startedAt: startedAt ?? undefined,
    finishedAt: finishedAt ?? undefined,
    transitions: job.transitions
      .slice(-statusLimits.transitions)
      .map(({ message, ...transition }) => ({
        ...transition,
        ...(message !== undefined && { message: truncateText(message, maxStatusMessageLength) }),
      })),
    telemetry: {
      ...figures,
      ...("level" in worst && { accuracy: worst }),
      warnings: warnings.slice(0, statusLimits.warnings).map((warning) => ({
        code: truncateText(warning.code, 64),
        message: truncateText(warning.message, 512),
      })),
    },
    artifacts: job.artifacts.slice(0, statusLimits.artifacts),
    gates: job.gates.slice(0, statusLimits.gates),
    error: error
      ? { ...error, message: truncateText(error.message, maxStatusMessageLength) }
      : undefined,
  };
}

const maxStatusMessageLength = 1024;

function truncateText(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1).toWellFormed()}…` : text;
}
