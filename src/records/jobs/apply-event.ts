import type { JobError } from "../../contract/errors.ts";
import { type Artifact, maxArtifacts } from "../../contract/jobs/artifact.ts";
import type { Requester } from "../../contract/jobs/creation.ts";
import { evaluateGates } from "../../contract/jobs/evaluate-gates.ts";
import { hasFailedGate } from "../../contract/jobs/gate.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { type StatusCause, statusCause } from "../../contract/jobs/status-reasons.ts";
import {
  canTransition,
  isTerminal,
  type JobStatus,
  type WorkingStatus,
} from "../../contract/jobs/status.ts";
import { textLimits } from "../../contract/limits.ts";
import type { WarningCode } from "../../contract/jobs/warnings.ts";
import type { Telemetry } from "../../contract/jobs/telemetry.ts";
import type { TelemetryUpdate, UnnumberedEvent } from "../../contract/worker-protocol/messages.ts";
import { truncate } from "../../contract/text/truncate.ts";

/** What happens to a job besides what its workers report. */
type ServiceEvent =
  /** The job waits for the cause, also again where that interrupts its work. */
  | WaitingEvent
  | CancelEvent
  /** No process of the job runs any more. */
  | ({ readonly type: "stopped" } & Partial<ObservedCause>)
  /** The work ended without a result of the worker. */
  | { readonly type: "failure"; readonly error: JobError }
  /** The work starts again from its beginning. */
  | { readonly type: "restart" };

interface CancelEvent extends Partial<ObservedCause> {
  readonly type: "cancel";
  /** Whose request it was; absent where nobody asked the service for it. */
  readonly by?: Requester | undefined;
}

interface WaitingEvent extends ObservedCause {
  readonly type: "waiting";
  readonly interrupts?: boolean;
}

export type JobEvent = UnnumberedEvent | ServiceEvent;

/** A cause that can also come from an operator of another version, with reasons of its own. */
interface ObservedCause {
  readonly reason: string;
  readonly message: string;
}

type FactEvent = JobEvent & { type: "model" | "telemetry" | "restart" };

const workingCauses: Readonly<Record<WorkingStatus, StatusCause>> = {
  Sharding: statusCause("sharding"),
  Optimizing: statusCause("optimizing"),
};

export const emptyTelemetry: Telemetry = { progress: { fraction: 0 }, warnings: [] };

/**
 * The job after an event. An event that the transition table does not allow is ignored, and a job
 * in a terminal status never changes.
 */
export function applyEvent(job: Job, event: JobEvent, now: Date): Job {
  if (isTerminal(job.status)) return job;
  switch (event.type) {
    case "log":
    case "outline":
    case "share":
      return job;
    case "model":
    case "telemetry":
    case "restart":
      return withUpdate(job, changedFacts(job, event), now);
    case "artifact":
      return applyArtifact(job, event.artifact, now);
    case "waiting":
      return applyWaiting(job, event, now);
    case "status":
      return transitionJob(job, event.status, { now, ...workingCauses[event.status] });
    case "result":
      return applyResult(job, event, now);
    case "failure":
      return failJob(job, event.error, now);
    case "cancel":
      return cancelJob(job, event, now);
    case "stopped":
      return transitionJob(job, "Cancelled", { ...statusCause("cancelled"), ...event, now });
  }
}

function cancelJob(job: Job, { by, ...cause }: CancelEvent, now: Date): Job {
  const whole = { ...statusCause("cancel_requested"), ...cause, now };
  const cancelled = transitionJob(job, "Cancelling", whole);
  return cancelled === job || by === undefined ? cancelled : { ...cancelled, cancelledBy: by };
}

function changedFacts(job: Job, event: FactEvent): Partial<Job> {
  switch (event.type) {
    case "model":
      return { model: { ...job.model, bytes: event.bytes, actualSha256: event.sha256 } };
    case "telemetry":
      return { telemetry: mergeTelemetry(job.telemetry, event.telemetry) };
    case "restart":
      return { telemetry: emptyTelemetry, artifacts: [] };
  }
}

function applyWaiting(job: Job, event: WaitingEvent, now: Date): Job {
  const { reason, message, interrupts = false } = event;
  if (interrupts) return transitionJob(job, "Pending", { reason, message, now });
  const isChanged = job.statusReason !== reason || job.statusMessage !== message;
  if (job.status !== "Pending" || !isChanged) return job;
  return withUpdate(job, { statusReason: reason, statusMessage: message }, now);
}

const unexplainedFailure: JobError = {
  code: "worker_crashed",
  message: "The worker failed without a reason",
};

function applyResult(job: Job, event: JobEvent & { type: "result" }, now: Date): Job {
  switch (event.outcome) {
    case "Completed":
      return completeJob(warnOfMissingFiles(job), now);
    case "Failed":
      return failJob(warnOfMissingFiles(job), event.error ?? unexplainedFailure, now);
    case "Cancelled":
      return job;
  }
}

function warnOfMissingFiles(job: Job): Job {
  const missing = job.artifacts.filter((artifact) => artifact.missing).map(({ name }) => name);
  if (missing.length === 0 || isTerminal(job.status)) return job;
  const message = truncate(
    `The backup that the records were restored from is older than ${missing.join(", ")}`,
    textLimits.telemetryWarning,
  );
  const warning = { code: "files_missing" satisfies WarningCode, message };
  const warnings = [...job.telemetry.warnings, warning];
  return { ...job, telemetry: { ...job.telemetry, warnings } };
}

function completeJob(job: Job, now: Date): Job {
  if (!canTransition(job.kind, job.status, "Completed")) return job;
  const telemetry = { ...job.telemetry, progress: { fraction: 1 } };
  if (job.dryRun) {
    const cause = { ...statusCause("completed"), message: "The plan was made" };
    return transitionJob({ ...job, telemetry }, "Completed", { now, ...cause });
  }
  const gates = evaluateGates(job.gateLimits, telemetry, job.baseline);
  const cause = statusCause(hasFailedGate(gates) ? "gates_failed" : "completed");
  return transitionJob({ ...job, telemetry, gates }, "Completed", { now, ...cause });
}

function failJob(job: Job, error: JobError, now: Date): Job {
  if (!canTransition(job.kind, job.status, "Failed")) return job;
  const { code: reason, message } = error;
  return transitionJob({ ...job, error }, "Failed", { now, reason, message });
}

function transitionJob(
  job: Job,
  status: JobStatus,
  { reason, message, now }: ObservedCause & { readonly now: Date },
): Job {
  if (!canTransition(job.kind, job.status, status)) return job;
  const at = status === "Pending" ? now.toISOString() : timeOfTransition(job, now);
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

/**
 * Not before the transition before it, though clocks of replicas and of the operator differ. The
 * time of an interruption stays: the resource's status has the same one.
 */
function timeOfTransition({ transitions }: Job, now: Date): string {
  const [last = "", at] = [transitions.at(-1)?.at, now.toISOString()];
  return last > at ? last : at;
}

function withUpdate(job: Job, changes: Partial<Job>, now: Date): Job {
  return { ...job, ...changes, updatedAt: now.toISOString() };
}

function mergeTelemetry(telemetry: Telemetry, update: TelemetryUpdate): Telemetry {
  const { progress = telemetry.progress, warnings = telemetry.warnings } = update;
  return { ...telemetry, ...update, progress, warnings };
}

/** The engine refuses recipes that would give more. */
const tooManyArtifacts: JobError = {
  code: "worker_crashed",
  message: `The worker reported more files than the ${maxArtifacts} that a job may have`,
};

function applyArtifact(job: Job, artifact: Artifact, now: Date): Job {
  const artifacts = withArtifact(job.artifacts, artifact);
  if (artifacts.length > maxArtifacts) return failJob(job, tooManyArtifacts, now);
  return withUpdate(job, { artifacts }, now);
}

function withArtifact(artifacts: readonly Artifact[], added: Artifact): Artifact[] {
  const index = artifacts.findIndex((artifact) => artifact.name === added.name);
  return index < 0 ? [...artifacts, added] : artifacts.with(index, added);
}

/** The job after several events at one time. */
export function applyEvents(job: Job, events: readonly JobEvent[], now: Date): Job {
  return events.reduce((known, event) => applyEvent(known, event, now), job);
}
