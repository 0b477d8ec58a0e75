import {
  type CompressionJobStatus,
  type Condition,
  conditionTypes,
  statusLimits,
} from "../contract/custom-resources.ts";
import type { Job } from "../contract/job.ts";
import { isTerminal, type JobStatus, leadsTo } from "../contract/status.ts";
import type { CompressionJobObject } from "../kubernetes/custom-resources.ts";
import type { Stored } from "../kubernetes/resources.ts";
import { withCondition } from "../kubernetes/with-condition.ts";

interface Projection {
  readonly job: Job;
  readonly resource: Stored<CompressionJobObject>;
  /** Whether nothing of the job is left that is not in the records. */
  readonly recorded: boolean;
  readonly now: Date;
}

/** The status as the API server shows it where nobody has written one. */
export function statusOf({ status }: CompressionJobObject): CompressionJobStatus {
  return status ?? { status: "Pending" };
}

export function isRecorded({ conditions = [] }: CompressionJobStatus): boolean {
  return conditions.some(({ type, status }) => type === conditionTypes.recorded && status === "True");
}

/**
 * The status that a resource should have by the record of its job. What a job waits for, that it is stopped and that it was
 * stopped are the operator's to say; a status that is final stays, whatever the record says.
 */
export function projectedStatus({ job, resource, recorded, now }: Projection): CompressionJobStatus {
  const before = statusOf(resource);
  const isAgreed = before.status === job.status;
  const isNews = !operatorsOwn.has(job.status) && leadsTo(job.kind, before.status, job.status);
  const isShown = isNews || (isAgreed && !unmeasured.has(job.status));
  if (!isShown && !recorded) return before;
  const status = isShown ? { ...before, ...shown(job) } : before;
  const observed = { observedGeneration: resource.metadata.generation };
  const told: Omit<Condition, "lastTransitionTime">[] = [];
  if (isTerminal(status.status)) {
    const message = status.statusMessage ?? "";
    told.push({ type: conditionTypes.finished, status: "True", reason: status.status, message, ...observed });
  }
  if (recorded) told.push({ ...recordedCondition, ...observed });
  const conditions = told.reduce((all, each) => withCondition(all, each, now), before.conditions ?? []);
  return { ...status, ...observed, conditions };
}

const operatorsOwn: ReadonlySet<JobStatus> = new Set(["Pending", "Cancelling", "Cancelled"]);
const unmeasured: ReadonlySet<JobStatus> = new Set(["Pending", "Cancelling"]);

const recordedCondition = {
  type: conditionTypes.recorded,
  status: "True",
  reason: "Recorded",
  message: "Logs and result are in the service's records",
} as const;

function shown(job: Job): Omit<CompressionJobStatus, "conditions" | "observedGeneration"> {
  const { telemetry, error, startedAt, finishedAt } = job;
  const { accuracy, warnings, ...figures } = telemetry;
  const { outputs: _, ...worst } = accuracy ?? { outputs: [] };
  return {
    jobId: job.id,
    status: job.status,
    statusReason: cut(job.statusReason, 64),
    statusMessage: cut(job.statusMessage, maxMessage),
    progress: `${Math.floor(telemetry.progress.fraction * 100)}%`,
    ratio: telemetry.size && telemetry.size.ratio.toFixed(2),
    startedAt: startedAt ?? undefined,
    finishedAt: finishedAt ?? undefined,
    transitions: job.transitions.slice(-statusLimits.transitions).map(({ message, ...transition }) => ({
      ...transition,
      ...(message !== undefined && { message: cut(message, maxMessage) }),
    })),
    telemetry: {
      ...figures,
      ...("level" in worst && { accuracy: worst }),
      warnings: warnings.slice(0, statusLimits.warnings).map((warning) => ({
        code: cut(warning.code, 64),
        message: cut(warning.message, 512),
      })),
    },
    artifacts: job.artifacts.slice(0, statusLimits.artifacts),
    gates: job.gates.slice(0, statusLimits.gates),
    error: error ? { ...error, message: cut(error.message, maxMessage) } : undefined,
  };
}

const maxMessage = 1024;

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1).toWellFormed()}…` : text;
}
