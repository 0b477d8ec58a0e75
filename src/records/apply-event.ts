import type { Artifact } from "../contract/artifact.ts";
import type { JobError } from "../contract/errors.ts";
import { evaluateGates, hasFailedGate } from "../contract/gate.ts";
import type { Job } from "../contract/job.ts";
import { canTransition, isTerminal, type JobStatus } from "../contract/status.ts";
import type { Telemetry } from "../contract/telemetry.ts";
import type { TelemetryUpdate, UnnumberedEvent } from "../contract/worker.ts";

/** What happens to a job besides what its workers tell. */
export type ServiceEvent =
  /** The job waits, and now it is known what for. */
  | ({ readonly type: "waiting" } & Cause)
  | ({ readonly type: "cancel" } & Partial<Cause>)
  /** No process of the job runs any more. */
  | ({ readonly type: "stopped" } & Partial<Cause>)
  /** The work ended without a result of the worker. */
  | { readonly type: "failure"; readonly error: JobError }
  /** The work begins again from its start. */
  | { readonly type: "restart" };

export type JobEvent = UnnumberedEvent | ServiceEvent;

interface Cause {
  readonly reason: string;
  readonly message: string;
}

const workingCauses = {
  Sharding: { reason: "sharding", message: "The worker fetches the model and shards its weights" },
  Optimizing: { reason: "optimizing", message: "The worker optimizes and evaluates the model" },
} as const;

const cancelCause: Cause = { reason: "cancel_requested", message: "The job is being stopped" };
const stoppedCause: Cause = { reason: "cancelled", message: "The job was cancelled" };
export const pendingCause: Cause = { reason: "queued", message: "Waiting for a worker" };
export const unmeasured: Telemetry = { progress: { fraction: 0 }, warnings: [] };

/**
 * The job after an event. Statuses follow the transition table alone: what would break it is ignored, and a job that has
 * ended never changes again.
 */
export function applyEvent(job: Job, event: JobEvent, now: Date): Job {
  if (isTerminal(job.status)) return job;
  switch (event.type) {
    case "log":
    case "share":
      return job;
    case "waiting":
      return waiting(job, event, now);
    case "status":
      return moved(job, event.status, { now, ...workingCauses[event.status] });
    case "model":
      return touched({ ...job, model: { ...job.model, bytes: event.bytes, actualSha256: event.sha256 } }, now);
    case "telemetry":
      return touched({ ...job, telemetry: merged(job.telemetry, event.telemetry) }, now);
    case "artifact":
      return touched({ ...job, artifacts: withArtifact(job.artifacts, event.artifact) }, now);
    case "result":
      return withResult(job, event, now);
    case "restart":
      return touched({ ...job, telemetry: unmeasured, artifacts: [] }, now);
    case "failure":
      return failed(job, event.error, now);
    case "cancel":
      return moved(job, "Cancelling", { ...cancelCause, ...event, now });
    case "stopped":
      return moved(job, "Cancelled", { ...stoppedCause, ...event, now });
  }
}

function waiting(job: Job, { reason, message }: Cause, now: Date): Job {
  const isNews = job.statusReason !== reason || job.statusMessage !== message;
  if (job.status !== "Pending" || !isNews) return job;
  return touched({ ...job, statusReason: reason, statusMessage: message }, now);
}

function withResult(job: Job, event: JobEvent & { type: "result" }, now: Date): Job {
  switch (event.outcome) {
    case "Completed":
      return completed(job, now);
    case "Failed":
      return failed(job, event.error ?? { code: "worker_crashed", message: "The worker failed without a reason" }, now);
    case "Cancelled":
      return job;
  }
}

function completed(job: Job, now: Date): Job {
  if (!canTransition(job.kind, job.status, "Completed")) return job;
  const telemetry = { ...job.telemetry, progress: { fraction: 1 } };
  if (job.dryRun) {
    return moved({ ...job, telemetry }, "Completed", { now, reason: "completed", message: "The plan was made" });
  }
  const gates = evaluateGates(job.gateLimits, telemetry, job.baseline);
  const cause = hasFailedGate(gates)
    ? { reason: "gates_failed", message: "The model was compressed, and a gate failed" }
    : { reason: "completed", message: "The model was compressed" };
  return moved({ ...job, telemetry, gates }, "Completed", { now, ...cause });
}

function failed(job: Job, error: JobError, now: Date): Job {
  if (!canTransition(job.kind, job.status, "Failed")) return job;
  return moved({ ...job, error }, "Failed", { now, reason: error.code, message: error.message });
}

function moved(job: Job, status: JobStatus, cause: Cause & { readonly now: Date }): Job {
  if (!canTransition(job.kind, job.status, status)) return job;
  const at = cause.now.toISOString();
  const { reason, message } = cause;
  return {
    ...job,
    status,
    statusReason: reason,
    statusMessage: message,
    updatedAt: at,
    startedAt: status in workingCauses ? (job.startedAt ?? at) : job.startedAt,
    finishedAt: isTerminal(status) ? at : null,
    transitions: [...job.transitions, { status, at, reason, message }],
  };
}

function touched(job: Job, now: Date): Job {
  return { ...job, updatedAt: now.toISOString() };
}

function merged(telemetry: Telemetry, update: TelemetryUpdate): Telemetry {
  const { progress = telemetry.progress, warnings = telemetry.warnings } = update;
  return { ...telemetry, ...update, progress, warnings };
}

function withArtifact(artifacts: readonly Artifact[], added: Artifact): Artifact[] {
  const known = artifacts.some((artifact) => artifact.name === added.name);
  return known ? artifacts.map((artifact) => (artifact.name === added.name ? added : artifact)) : [...artifacts, added];
}
