import {
  deriveBatchStatus,
  zeroCounts,
  type StatusCounts,
} from "../../../src/contract/batch-status.ts";
import {
  type BatchResourceStatus,
  type JobStateCode,
  jobStateCodes,
} from "../../../src/contract/batch-resource.ts";
import { type Condition, conditionTypes } from "../../../src/contract/condition.ts";
import { statusLimits } from "../../../src/contract/resource-status.ts";
import { batchChildName } from "../../../src/contract/id.ts";
import { type BatchStatus, isTerminal, type JobStatus } from "../../../src/contract/status.ts";
import { resolveBatchId } from "../../../src/resources/job-identity.ts";
import { withCondition } from "../../../src/resources/with-condition.ts";
import type { ObservedBatchState } from "./observed-batch-state.ts";
import { batchJobCount, modelTargetPair } from "../../../src/resources/child-compression-job.ts";
import { isFromEarlierBatch, type BatchJobStates } from "./job-states.ts";

const maxMessage = 1_024;
const maxFailureMessage = 512;
const maxModel = 100;

/** What the status of the batch is to say. It is the present one, and nothing but, where there is nothing new. */
export function nextBatchStatus(
  observed: ObservedBatchState,
  jobStates: BatchJobStates,
  suspended: boolean,
): BatchResourceStatus {
  const { batch, now } = observed;
  const { status: before, metadata, spec } = batch;
  const generation = metadata.generation ?? 0;
  if (before !== undefined && isTerminal(before.status))
    return { ...before, observedGeneration: generation };

  const counts = countJobsByStatus(observed, jobStates.states);
  const fromJobs = deriveBatchStatus(counts);
  const status = spec.cancel && !isTerminal(fromJobs) ? "Cancelling" : fromJobs;
  const failures = listFailures(observed, jobStates.states);
  const startedAt = before?.startedAt ?? earliestStart(observed);
  const gatesFailed = jobStates.states.filter((state) => state === jobStateCodes.gateFailed).length;
  const situation = { status, counts, gatesFailed, stopping: jobStates.stopping };
  const message = batchStatusMessage(observed, situation)?.slice(0, maxMessage);
  return {
    batchId: resolveBatchId(batch),
    status,
    ...(message !== undefined && { statusMessage: message }),
    observedGeneration: generation,
    jobs: batchJobCount(batch),
    finished: `${endedCount(counts)}/${batchJobCount(batch)}`,
    counts,
    gatesFailed,
    marks: jobStates.states.join(""),
    ...(failures.length > 0 && { failures }),
    ...(startedAt !== undefined && { startedAt }),
    ...(isTerminal(status) && { finishedAt: now.toISOString() }),
    conditions: batchConditions(observed, { status, message, suspended }),
  };
}

const endedStatus: Readonly<Record<Exclude<JobStateCode, "m">, JobStatus>> = {
  [jobStateCodes.notCreated]: "Pending",
  [jobStateCodes.completed]: "Completed",
  [jobStateCodes.gateFailed]: "Completed",
  [jobStateCodes.failed]: "Failed",
  [jobStateCodes.cancelled]: "Cancelled",
};

function countJobsByStatus(
  { children }: ObservedBatchState,
  states: readonly JobStateCode[],
): StatusCounts {
  const counts = { ...zeroCounts };
  states.forEach((state, index) => {
    counts[
      state === jobStateCodes.created
        ? (children.get(index)?.status?.status ?? "Pending")
        : endedStatus[state]
    ]++;
  });
  return counts;
}

function endedCount({ Completed, Failed, Cancelled }: StatusCounts): number {
  return Completed + Failed + Cancelled;
}

type Failures = NonNullable<BatchResourceStatus["failures"]>;

/** Failures that were told stay, whatever becomes of their CompressionJobs. */
function listFailures(observed: ObservedBatchState, states: readonly JobStateCode[]): Failures {
  const { batch } = observed;
  const reported = batch.status?.failures ?? [];
  const reportedJobs = new Set(reported.map(({ job }) => job));
  const newFailures = states.flatMap((state, index) => {
    const job = batchChildName(batch.metadata.name, index);
    if (state !== jobStateCodes.failed || reportedJobs.has(job)) return [];
    const { model, target } = modelTargetPair(batch, index);
    const name = model.name ?? model.source.slice(-maxModel);
    return [{ job, model: name, target, ...failureCause(observed, index) }];
  });
  return [...reported, ...newFailures].slice(0, statusLimits.failures);
}

function failureCause(
  { children, nameConflicts }: ObservedBatchState,
  index: number,
): Pick<Failures[number], "reason" | "message"> {
  const { error, statusReason, statusMessage } = children.get(index)?.status ?? {};
  if (nameConflicts.has(index)) {
    return {
      reason: "NameConflict",
      message: "Another CompressionJob has the name, and does not belong to the Batch",
    };
  }
  const message = error?.message ?? statusMessage ?? "";
  return {
    reason: error?.code ?? statusReason ?? "",
    message: message.slice(0, maxFailureMessage),
  };
}

function earliestStart({ children }: ObservedBatchState): string | undefined {
  const starts = [...children.values()].flatMap(({ status }) => status?.startedAt ?? []);
  return starts.toSorted()[0];
}

interface Situation {
  readonly status: BatchStatus;
  readonly counts: StatusCounts;
  readonly gatesFailed: number;
  readonly stopping: boolean;
}

/** What people want to know beside the figures. */
function batchStatusMessage(
  observed: ObservedBatchState,
  situation: Situation,
): string | undefined {
  const { batch, children, nameConflicts } = observed;
  const { counts, gatesFailed } = situation;
  const all = `${batchJobCount(batch)} jobs`;
  const unfinished = batchJobCount(batch) - endedCount(counts);
  switch (situation.status) {
    case "Completed":
      return gatesFailed > 0 ? `${gatesFailed} of ${all} have a gate that failed` : undefined;
    case "Failed":
      return `${counts.Failed} of ${all} failed`;
    case "Cancelled":
      return `${counts.Cancelled} of ${all} were cancelled`;
    case "Cancelling":
      return `${unfinished} of ${all} have still to stop`;
    case "Pending":
    case "Running":
  }
  if (situation.stopping) return `A job failed: ${unfinished} of ${all} are being cancelled`;
  if (batch.spec.suspend) return `Suspended: ${unfinished} of ${all} are held`;
  const leftover = [...nameConflicts.values()].find((other) => isFromEarlierBatch(other, batch));
  if (leftover !== undefined) {
    return `Waits until CompressionJob "${leftover.metadata.name}" of an earlier Batch of this name is gone`;
  }
  if (situation.status === "Running") return undefined;
  return [...children.values()].find(({ status }) => status?.statusMessage)?.status?.statusMessage;
}

interface ConditionInputs {
  readonly status: BatchStatus;
  readonly message: string | undefined;
  readonly suspended: boolean;
}

function batchConditions(
  { batch, now }: ObservedBatchState,
  { status, message = "", suspended }: ConditionInputs,
): Condition[] {
  const observedGeneration = batch.metadata.generation ?? 0;
  const finished = withCondition(
    batch.status?.conditions,
    {
      type: conditionTypes.finished,
      status: isTerminal(status) ? "True" : "False",
      observedGeneration,
      reason: status,
      message: isTerminal(status) ? message : "",
    },
    now,
  );
  const wasSuspended = finished.some(({ type }) => type === conditionTypes.suspended);
  if (!suspended && !wasSuspended) return finished;
  return withCondition(
    finished,
    {
      type: conditionTypes.suspended,
      status: suspended ? "True" : "False",
      observedGeneration,
      reason: suspended ? "Suspended" : "Resumed",
      message: "",
    },
    now,
  );
}
