import type { CompressionJobStatus } from "../../contract/custom-resources/compression-job.ts";
import { type Condition, conditionTypes } from "../../contract/custom-resources/condition.ts";
import type { EventReason } from "../../contract/custom-resources/event-reasons.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { isTerminal, type JobStatus, leadsTo } from "../../contract/jobs/status.ts";
import type { Stored } from "../../kubernetes/resources.ts";
import type { CompressionJobObject } from "../../resources/custom-resources.ts";
import { lifecycleConditions } from "../../resources/lifecycle-conditions.ts";
import { hasTrueCondition } from "../../resources/has-true-condition.ts";
import { withCondition } from "../../resources/with-condition.ts";
import { findInterruption } from "./find-interruption.ts";
import { statusFieldsFromJob } from "./status-fields-from-job.ts";

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
