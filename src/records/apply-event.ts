import type { Artifact } from "../contract/artifact.ts";
import type { JobError } from "../contract/errors.ts";
import { hasFailedGate } from "../contract/gate.ts";
import { evaluateGates } from "../contract/evaluate-gates.ts";
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
export const emptyTelemetry: Telemetry = { progress: { fraction: 0 }, warnings: [] };

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
      return applyWaiting(job, event, now);
    case "status":
      return transitionJob(job, event.status, { now, ...workingCauses[event.status] });
    case "model":
      return withUpdatedAt(
        { ...job, model: { ...job.model, bytes: event.bytes, actualSha256: event.sha256 } },
        now,
      );
    case "telemetry":
      return withUpdatedAt(
        { ...job, telemetry: mergeTelemetry(job.telemetry, event.telemetry) },
        now,
      );
    case "artifact":
      return withUpdatedAt({ ...job, artifacts: withArtifact(job.artifacts, event.artifact) }, now);
    case "result":
      return applyResult(job, event, now);
    case "restart":
      return withUpdatedAt({ ...job, telemetry: emptyTelemetry, artifacts: [] }, now);
    case "failure":
      return failJob(job, event.error, now);
    case "cancel":
      return transitionJob(job, "Cancelling", { ...cancelCause, ...event, now });
    case "stopped":
      return transitionJob(job, "Cancelled", { ...stoppedCause, ...event, now });
  }
}

function applyWaiting(job: Job, { reason, message }: Cause, now: Date): Job {
  const isChanged = job.statusReason !== reason || job.statusMessage !== message;
  if (job.status !== "Pending" || !isChanged) return job;
  return withUpdatedAt({ ...job, statusReason: reason, statusMessage: message }, now);
}

function applyResult(job: Job, event: JobEvent & { type: "result" }, now: Date): Job {
  switch (event.outcome) {
    case "Completed":
      return completeJob(job, now);
    case "Failed":
      return failJob(
        job,
        event.error ?? { code: "worker_crashed", message: "The worker failed without a reason" },
        now,
      );
    case "Cancelled":
      return job;
  }
}

function completeJob(job: Job, now: Date): Job {
  if (!canTransition(job.kind, job.status, "Completed")) return job;
  const telemetry = { ...job.telemetry, progress: { fraction: 1 } };
  if (job.dryRun) {
    return transitionJob({ ...job, telemetry }, "Completed", {
      now,
      reason: "completed",
      message: "The plan was made",
    });
  }
  const gates = evaluateGates(job.gateLimits, telemetry, job.baseline);
  const cause = hasFailedGate(gates)
    ? { reason: "gates_failed", message: "The model was compressed, and a gate failed" }
    : { reason: "completed", message: "The model was compressed" };
  return transitionJob({ ...job, telemetry, gates }, "Completed", { now, ...cause });
}

function failJob(job: Job, error: JobError, now: Date): Job {
  if (!canTransition(job.kind, job.status, "Failed")) return job;
  return transitionJob({ ...job, error }, "Failed", {
    now,
    reason: error.code,
    message: error.message,
  });
}

function transitionJob(job: Job, status: JobStatus, cause: Cause & { readonly now: Date }): Job {
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

function withUpdatedAt(job: Job, now: Date): Job {
  return { ...job, updatedAt: now.toISOString() };
}

function mergeTelemetry(telemetry: Telemetry, update: TelemetryUpdate): Telemetry {
  const { progress = telemetry.progress, warnings = telemetry.warnings } = update;
  return { ...telemetry, ...update, progress, warnings };
}

function withArtifact(artifacts: readonly Artifact[], added: Artifact): Artifact[] {
  const known = artifacts.some((artifact) => artifact.name === added.name);
  return known
    ? artifacts.map((artifact) => (artifact.name === added.name ? added : artifact))
    : [...artifacts, added];
}
