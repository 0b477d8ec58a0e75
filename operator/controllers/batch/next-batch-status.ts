import {
  type BatchJobStates,
  type BatchRefusal,
  countEndedJobs,
  countJobsByStatus,
  isFromEarlierBatch,
  recordedJobState,
} from "./job-states.ts";
import type { ObservedBatchState } from "./observed-batch-state.ts";
import { statusLimits } from "../../../src/contract/custom-resources/api-group.ts";
import {
  type BatchResourceStatus,
  type JobStateCode,
  jobStateCodes,
} from "../../../src/contract/custom-resources/batch-resource.ts";
import {
  type Condition,
  conditionTypes,
} from "../../../src/contract/custom-resources/condition.ts";
import type { ErrorCode } from "../../../src/contract/errors.ts";
import type { EventReason } from "../../../src/contract/custom-resources/event-reasons.ts";
import { batchChildName } from "../../../src/contract/id.ts";
import { deriveBatchStatus, type StatusCounts } from "../../../src/contract/batches/batch.ts";
import { type BatchStatus, isTerminal } from "../../../src/contract/jobs/status.ts";
import type { StatusReason } from "../../../src/contract/jobs/status-reasons.ts";
import { textLimits } from "../../../src/contract/limits.ts";
import { truncate } from "../../../src/contract/text/truncate.ts";
import { batchJobCount, modelTargetPair } from "../../../src/resources/child-compression-job.ts";
import { resolveBatchId } from "../../../src/resources/job-identity.ts";
import {
  type ConditionValue,
  lifecycleConditions,
  ofGeneration,
  withCondition,
} from "../../../src/resources/conditions.ts";

/**
 * Equal to the present status where nothing has changed. Terminal statuses stay, but for gates of
 * jobs that are reported after the end.
 */
export function nextBatchStatus(
  observed: ObservedBatchState,
  jobStates: BatchJobStates,
  isSuspended: boolean,
): BatchResourceStatus {
  const { status: before } = observed.batch;
  if (before === undefined || !isTerminal(before.status)) {
    return statusFromJobs(observed, jobStates, isSuspended);
  }
  const states = withLateGates(observed, jobStates);
  const observedGeneration = generationOf(observed.batch);
  if (states === undefined) {
    const conditions = ofGeneration(before.conditions, observedGeneration);
    return { ...before, observedGeneration, conditions };
  }
  const { status, finishedAt } = before;
  return { ...statusFromJobs(observed, { ...jobStates, states }, isSuspended), status, finishedAt };
}

/** The recorded states with gates that have failed since; undefined where none has. */
function withLateGates(
  { batch }: ObservedBatchState,
  { states }: BatchJobStates,
): JobStateCode[] | undefined {
  const { completed, gateFailed } = jobStateCodes;
  const recorded = states.map((_, index) => recordedJobState(batch, index));
  const isLate = (state: JobStateCode | undefined, index: number) =>
    state === gateFailed && recorded[index] === completed;
  if (!states.some(isLate)) return undefined;
  return recorded.map((state, index) => (isLate(states[index], index) ? gateFailed : state));
}

/** The API server counts the generations of every custom resource. */
function generationOf({ metadata }: ObservedBatchState["batch"]): number {
  if (metadata.generation === undefined) throw new TypeError(`${metadata.name} has no generation`);
  return metadata.generation;
}

/** Without fields that are undefined, for the comparison with the present status. */
function statusFromJobs(
  observed: ObservedBatchState,
  jobStates: BatchJobStates,
  isSuspended: boolean,
): BatchResourceStatus {
  const { batch, now } = observed;
  const situation = readSituation(observed, jobStates);
  const { status, counts, gatesFailed } = situation;
  const message = truncatedMessage(observed, situation);
  const failures = listFailures(observed, jobStates);
  const startedAt = batch.status?.startedAt ?? earliestStart(observed);
  const next: BatchResourceStatus = {
    batchId: resolveBatchId(batch),
    status,
    observedGeneration: generationOf(batch),
    jobs: batchJobCount(batch),
    finished: `${countEndedJobs(counts)}/${batchJobCount(batch)}`,
    counts,
    gatesFailed,
    marks: jobStates.states.join(""),
    conditions: batchConditions(observed, status, message, isSuspended),
  };
  if (message !== undefined) next.statusMessage = message;
  if (message !== undefined && message === observed.writeError) {
    next.statusReason = "not_submitted" satisfies StatusReason;
  }
  if (failures.length > 0) next.failures = failures;
  if (startedAt !== undefined) next.startedAt = startedAt;
  if (isTerminal(status)) next.finishedAt = now.toISOString();
  return next;
}

function readSituation(
  observed: ObservedBatchState,
  { states, stopping, refusal }: BatchJobStates,
): BatchSituation {
  const counts = countJobsByStatus(observed, states);
  const fromJobs = deriveBatchStatus(counts);
  const isCancelling = observed.batch.spec.cancel && !isTerminal(fromJobs);
  const gatesFailed = states.filter((state) => state === jobStateCodes.gateFailed).length;
  return { status: isCancelling ? "Cancelling" : fromJobs, counts, gatesFailed, stopping, refusal };
}

function truncatedMessage(
  observed: ObservedBatchState,
  situation: BatchSituation,
): string | undefined {
  const message = batchStatusMessage(observed, situation);
  return message === undefined ? undefined : truncate(message, textLimits.statusMessage);
}

function earliestStart({ children }: ObservedBatchState): string | undefined {
  const starts = [...children.values()].flatMap(({ status }) => status?.startedAt ?? []);
  return starts.toSorted()[0];
}

/** Those of its status, and `Suspended` of a batch that is or was. */
function batchConditions(
  { batch, now }: ObservedBatchState,
  status: BatchStatus,
  message = "",
  isSuspended: boolean,
): Condition[] {
  const observedGeneration = generationOf(batch);
  const before = batch.status?.conditions;
  const conditions = statusConditions(status, message, before).reduce<Condition[]>(
    (all, condition) => withCondition(all, { ...condition, observedGeneration }, now),
    before ?? [],
  );
  if (isTerminal(status)) return conditions;
  const hasSuspended = conditions.some(({ type }) => type === conditionTypes.suspended);
  if (!isSuspended && !hasSuspended) return conditions;
  const suspended = isSuspended ? suspendedCondition : resumedCondition;
  return withCondition(conditions, { ...suspended, observedGeneration }, now);
}

/** The message of a batch that goes on changes with every job: conditions do not have it. */
function statusConditions(
  status: BatchStatus,
  message: string,
  before: readonly Condition[] | undefined,
): ConditionValue[] {
  if (isTerminal(status)) return lifecycleConditions(status, message, before);
  const type = conditionTypes.finished;
  const unfinished: ConditionValue = { type, status: "False", reason: status, message: "" };
  return [unfinished, ...lifecycleConditions(status, "", before)];
}

const suspendedCondition: ConditionValue = {
  type: conditionTypes.suspended,
  status: "True",
  reason: "Suspended" satisfies EventReason,
  message: "",
};

const resumedCondition: ConditionValue = {
  type: conditionTypes.suspended,
  status: "False",
  reason: "Resumed" satisfies EventReason,
  message: "",
};

type Failures = NonNullable<BatchResourceStatus["failures"]>;

const maxModelName = 100;

/** The first failures. A reported one stays when its CompressionJob is deleted. */
function listFailures(observed: ObservedBatchState, { states, refusal }: BatchJobStates): Failures {
  const { batch } = observed;
  const reported = batch.status?.failures ?? [];
  const reportedJobs = new Set(reported.map(({ job }) => job));
  const newFailures = states.flatMap((state, index) => {
    const job = batchChildName(batch.metadata.name, index);
    if (state !== jobStateCodes.failed || reportedJobs.has(job)) return [];
    const { model, target } = modelTargetPair(batch, index);
    const name = model.name ?? model.source.slice(-maxModelName);
    return [{ job, model: name, target, ...failureCause(observed, index, refusal) }];
  });
  return [...reported, ...newFailures].slice(0, statusLimits.failures);
}

function failureCause(
  { children, denied, nameConflicts }: ObservedBatchState,
  index: number,
  refusal: BatchRefusal | undefined,
): Pick<Failures[number], "reason" | "message"> {
  if (nameConflicts.has(index)) {
    return {
      reason: "NameConflict" satisfies EventReason,
      message: "Another CompressionJob has the name, and does not belong to the Batch",
    };
  }
  const denial = denied?.get(index);
  if (denial !== undefined) {
    const reason = "resource_invalid" satisfies ErrorCode;
    return { reason, message: truncate(denial, textLimits.batchFailure) };
  }
  const child = children.get(index);
  if (child === undefined && refusal !== undefined) return refusal;
  const { error, statusReason, statusMessage } = child?.status ?? {};
  const message = error?.message ?? statusMessage ?? "";
  return {
    reason: error?.code ?? statusReason ?? "",
    message: truncate(message, textLimits.batchFailure),
  };
}

/** Figures of a batch, and the status that follows from them. */
interface BatchSituation {
  readonly status: BatchStatus;
  readonly counts: StatusCounts;
  readonly gatesFailed: number;
  readonly stopping: boolean;
  readonly refusal: BatchRefusal | undefined;
}

/** What people want to know beside the figures. */
function batchStatusMessage(
  observed: ObservedBatchState,
  situation: BatchSituation,
): string | undefined {
  const { counts, gatesFailed, refusal } = situation;
  const all = `${batchJobCount(observed.batch)} jobs`;
  switch (situation.status) {
    case "Completed":
      return gatesFailed > 0 ? `${gatesFailed} of ${all} have a gate that failed` : undefined;
    case "Failed":
      return refusal?.message ?? `${counts.Failed} of ${all} failed`;
    case "Cancelled":
      return `${counts.Cancelled} of ${all} were cancelled`;
    case "Cancelling":
      return `${countUnfinished(observed, counts)} of ${all} are still stopping`;
    case "Pending":
    case "Running":
      return unfinishedMessage(observed, situation);
  }
}

function unfinishedMessage(
  observed: ObservedBatchState,
  { status, counts, stopping }: BatchSituation,
): string | undefined {
  const { batch, children, writeError } = observed;
  const unfinished = `${countUnfinished(observed, counts)} of ${batchJobCount(batch)} jobs`;
  if (stopping) return `A job failed: ${unfinished} are being cancelled`;
  if (batch.spec.suspend) return `Suspended: ${unfinished} wait`;
  const leftover = findLeftover(observed);
  if (leftover !== undefined) {
    return `Waits until CompressionJob "${leftover}" of an earlier Batch of this name is deleted`;
  }
  if (writeError !== undefined) return writeError;
  if (status === "Running") return undefined;
  return [...children.values()].find((child) => child.status?.statusMessage)?.status?.statusMessage;
}

function countUnfinished({ batch }: ObservedBatchState, counts: StatusCounts): number {
  return batchJobCount(batch) - countEndedJobs(counts);
}

function findLeftover({ batch, nameConflicts }: ObservedBatchState): string | undefined {
  const leftover = [...nameConflicts.values()].find((other) => isFromEarlierBatch(other, batch));
  return leftover?.metadata.name;
}
