import type {
  CompressionJobStatus,
  JobReport,
} from "../../contract/custom-resources/compression-job.ts";
import { errorCode, type JobError } from "../../contract/errors.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { canTransition, type JobStatus, workingStatus } from "../../contract/jobs/status.ts";
import type { TelemetryUpdate } from "../../contract/worker-protocol/messages.ts";
import type { ObservedEvent } from "../../records/jobs/cluster-records.ts";
import { hasSeenInterruption, interruptionTime } from "../../resources/interruption.ts";

/**
 * The status of a resource as events of its job's record; those that the record has already change
 * nothing. A Pending record also takes telemetry and artifacts: without a database, the status is
 * all that remains of the work.
 */
export function eventsFromStatus(status: CompressionJobStatus, job: Job): ObservedEvent[] {
  if (status.status === "Pending") return waitingEvents(status, job);
  const { transitions = [] } = status;
  const enteredAt = new Map(transitions.map((transition) => [transition.status, transition.at]));
  // A status without a transition is dated by the current status, which followed it.
  const timeOf = (reached: JobStatus) => enteredAt.get(reached) ?? enteredAt.get(status.status);
  const working = workingStatus.options.filter(
    (each) => each === status.status || enteredAt.has(each) || status.status === "Completed",
  );
  const workingEvents = working.map((reached): ObservedEvent => ({
    type: "status",
    status: reached,
    at: timeOf(reached),
  }));
  const endedAt = timeOf(status.status);
  return [
    ...workingEvents,
    ...(job.status === "Pending" ? telemetryEvents(status.report) : []),
    ...endEvents(status, job).map((event): ObservedEvent => ({ ...event, at: endedAt })),
  ];
}

type UntimedEvent = ObservedEvent extends infer Event
  ? Event extends ObservedEvent
    ? Omit<Event, "at">
    : never
  : never;

function waitingEvents(status: CompressionJobStatus, job: Job): ObservedEvent[] {
  const { statusReason: reason, statusMessage: message } = status;
  if (reason === undefined || message === undefined) return [];
  const at = findInterruption(status, job);
  return [{ type: "waiting", reason, message, interrupts: at !== undefined, at }];
}

function telemetryEvents({ telemetry, artifacts = [] }: JobReport = {}): ObservedEvent[] {
  return [
    { type: "telemetry", telemetry: reportedTelemetry(telemetry) },
    ...artifacts.map((artifact): ObservedEvent => ({ type: "artifact", artifact })),
  ];
}

function reportedTelemetry({ accuracy, ...figures }: JobReport["telemetry"] = {}): TelemetryUpdate {
  return accuracy === undefined ? figures : { ...figures, accuracy: { ...accuracy, outputs: [] } };
}

function endEvents(status: CompressionJobStatus, job: Job): UntimedEvent[] {
  // The result of work that ended during the cancellation is dropped.
  const isLate = status.status === "Completed" || status.status === "Failed";
  if (job.status === "Cancelling" && isLate) return [{ type: "stopped" }];
  const { statusReason: reason, statusMessage: message } = status;
  const cause = reason === undefined || message === undefined ? {} : { reason, message };
  switch (status.status) {
    case "Completed":
      return [{ type: "result", outcome: "Completed" }];
    case "Failed":
      return [{ type: "failure", error: jobErrorFromStatus(status) }];
    case "Cancelling":
      return [{ type: "cancel", ...cause }];
    case "Cancelled":
      return [{ type: "cancel" }, { type: "stopped", ...cause }];
    case "Pending":
    case "Sharding":
    case "Optimizing":
      return [];
  }
}

function jobErrorFromStatus({
  error,
  statusReason,
  statusMessage,
}: CompressionJobStatus): JobError {
  if (error !== undefined) return error;
  const code = errorCode.safeParse(statusReason).data ?? "worker_crashed";
  return { code, message: statusMessage ?? "The job failed without a reason" };
}

/**
 * When the operator set a job that works, by its record, back to Pending, since its pods were taken
 * away. Undefined where the record has that already, and where new pods start.
 */
export function findInterruption(status: CompressionJobStatus, job: Job): string | undefined {
  if (!canTransition(job.kind, job.status, "Pending")) return undefined;
  return hasSeenInterruption(status, job.transitions) ? undefined : interruptionTime(status);
}
