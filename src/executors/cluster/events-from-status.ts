import type { CompressionJobStatus } from "../../contract/compression-job.ts";
import { errorCode, type JobError } from "../../contract/errors.ts";
import type { Job } from "../../contract/job.ts";
import { type JobStatus, workingStatus } from "../../contract/status.ts";
import type { ObservedEvent } from "../../records/cluster-records.ts";

/**
 * What a resource's status says of a job, as events for its record; those that the record knows already change nothing.
 * Figures and files are taken over by a record that was never worked on: the database was lost, and the status is all
 * that is left.
 */
export function eventsFromStatus(status: CompressionJobStatus, job: Job): ObservedEvent[] {
  if (status.status === "Pending") return waitingEvents(status);
  const { transitions = [] } = status;
  const enteredAt = new Map(transitions.map((transition) => [transition.status, transition.at]));
  const withTime = (reached: JobStatus, event: UntimedEvent): ObservedEvent => {
    // What nobody saw in between is taken to be as late as what came of it.
    const at = enteredAt.get(reached) ?? enteredAt.get(status.status);
    return { ...event, ...(at !== undefined && { at }) };
  };
  const working = workingStatus.options.filter(
    (each) => each === status.status || enteredAt.has(each) || status.status === "Completed",
  );
  return [
    ...working.map((reached) => withTime(reached, { type: "status", status: reached })),
    ...(job.status === "Pending" ? telemetryEvents(status) : []),
    ...endEvents(status, job).map((event) => withTime(status.status, event)),
  ];
}

type UntimedEvent = ObservedEvent extends infer Event
  ? Event extends ObservedEvent
    ? Omit<Event, "at">
    : never
  : never;

function waitingEvents({
  statusReason: reason,
  statusMessage: message,
}: CompressionJobStatus): ObservedEvent[] {
  return reason === undefined || message === undefined
    ? []
    : [{ type: "waiting", reason, message }];
}

function telemetryEvents({ telemetry, artifacts = [] }: CompressionJobStatus): ObservedEvent[] {
  const { accuracy, ...figures } = telemetry ?? {};
  const known = { ...figures, ...(accuracy && { accuracy: { ...accuracy, outputs: [] } }) };
  return [
    { type: "telemetry", telemetry: known },
    ...artifacts.map((artifact): ObservedEvent => ({ type: "artifact", artifact })),
  ];
}

function endEvents(status: CompressionJobStatus, job: Job): UntimedEvent[] {
  // Work that ended while somebody cancelled it: what came of it does not count any more.
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
