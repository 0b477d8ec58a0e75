import { batchStatusOf, noJobs, type StatusCounts } from "../../../src/contract/batch-status.ts";
import {
  type BatchResourceStatus,
  type Condition,
  conditionTypes,
  jobMarks,
  type JobMark,
  statusLimits,
} from "../../../src/contract/custom-resources.ts";
import { batchChildName } from "../../../src/contract/id.ts";
import { type BatchStatus, isTerminal, type JobStatus } from "../../../src/contract/status.ts";
import { batchIdOf } from "../../../src/kubernetes/job-identity.ts";
import { withCondition } from "../../../src/kubernetes/with-condition.ts";
import type { BatchWorld } from "./batch-world.ts";
import { jobsOf, pairOf } from "../../../src/kubernetes/child-of-batch.ts";
import { isLeftover, type MarkedJobs } from "./mark-jobs.ts";

const maxMessage = 1_024;
const maxFailureMessage = 512;
const maxModel = 100;

/** What the status of the batch is to say. It is the present one, and nothing but, where there is nothing new. */
export function nextBatchStatus(world: BatchWorld, marked: MarkedJobs, suspended: boolean): BatchResourceStatus {
  const { batch, now } = world;
  const { status: before, metadata, spec } = batch;
  const generation = metadata.generation ?? 0;
  if (before !== undefined && isTerminal(before.status)) return { ...before, observedGeneration: generation };

  const counts = countJobs(world, marked.marks);
  const fromJobs = batchStatusOf(counts);
  const status = spec.cancel && !isTerminal(fromJobs) ? "Cancelling" : fromJobs;
  const failures = failuresOf(world, marked.marks);
  const startedAt = before?.startedAt ?? earliestStart(world);
  const gatesFailed = marked.marks.filter((mark) => mark === jobMarks.gateFailed).length;
  const situation = { status, counts, gatesFailed, stopping: marked.stopping };
  const message = messageFor(world, situation)?.slice(0, maxMessage);
  return {
    batchId: batchIdOf(batch),
    status,
    ...(message !== undefined && { statusMessage: message }),
    observedGeneration: generation,
    jobs: jobsOf(batch),
    finished: `${endedIn(counts)}/${jobsOf(batch)}`,
    counts,
    gatesFailed,
    marks: marked.marks.join(""),
    ...(failures.length > 0 && { failures }),
    ...(startedAt !== undefined && { startedAt }),
    ...(isTerminal(status) && { finishedAt: now.toISOString() }),
    conditions: conditionsOf(world, { status, message, suspended }),
  };
}

const endedStatus: Readonly<Record<Exclude<JobMark, "m">, JobStatus>> = {
  [jobMarks.notMade]: "Pending",
  [jobMarks.completed]: "Completed",
  [jobMarks.gateFailed]: "Completed",
  [jobMarks.failed]: "Failed",
  [jobMarks.cancelled]: "Cancelled",
};

function countJobs({ children }: BatchWorld, marks: readonly JobMark[]): StatusCounts {
  const counts = { ...noJobs };
  marks.forEach((mark, index) => {
    counts[mark === jobMarks.made ? (children.get(index)?.status?.status ?? "Pending") : endedStatus[mark]]++;
  });
  return counts;
}

function endedIn({ Completed, Failed, Cancelled }: StatusCounts): number {
  return Completed + Failed + Cancelled;
}

type Failures = NonNullable<BatchResourceStatus["failures"]>;

/** Failures that were told stay, whatever becomes of their CompressionJobs. */
function failuresOf(world: BatchWorld, marks: readonly JobMark[]): Failures {
  const { batch } = world;
  const told = batch.status?.failures ?? [];
  const isTold = new Set(told.map(({ job }) => job));
  const found = marks.flatMap((mark, index) => {
    const job = batchChildName(batch.metadata.name, index);
    if (mark !== jobMarks.failed || isTold.has(job)) return [];
    const { model, target } = pairOf(batch, index);
    const name = model.name ?? model.source.slice(-maxModel);
    return [{ job, model: name, target, ...causeOf(world, index) }];
  });
  return [...told, ...found].slice(0, statusLimits.failures);
}

function causeOf({ children, taken }: BatchWorld, index: number): Pick<Failures[number], "reason" | "message"> {
  const { error, statusReason, statusMessage } = children.get(index)?.status ?? {};
  if (taken.has(index)) {
    return { reason: "NameConflict", message: "Another CompressionJob has the name, and does not belong to the Batch" };
  }
  const message = error?.message ?? statusMessage ?? "";
  return { reason: error?.code ?? statusReason ?? "", message: message.slice(0, maxFailureMessage) };
}

function earliestStart({ children }: BatchWorld): string | undefined {
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
function messageFor(world: BatchWorld, situation: Situation): string | undefined {
  const { batch, children, taken } = world;
  const { counts, gatesFailed } = situation;
  const all = `${jobsOf(batch)} jobs`;
  const unfinished = jobsOf(batch) - endedIn(counts);
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
  const leftover = [...taken.values()].find((other) => isLeftover(other, batch));
  if (leftover !== undefined) {
    return `Waits until CompressionJob "${leftover.metadata.name}" of an earlier Batch of this name is gone`;
  }
  if (situation.status === "Running") return undefined;
  return [...children.values()].find(({ status }) => status?.statusMessage)?.status?.statusMessage;
}

interface Told {
  readonly status: BatchStatus;
  readonly message: string | undefined;
  readonly suspended: boolean;
}

function conditionsOf({ batch, now }: BatchWorld, { status, message = "", suspended }: Told): Condition[] {
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
