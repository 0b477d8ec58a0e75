import { deriveBatchStatus } from "../../../src/contract/jobs/batch.ts";
import {
  type BatchResourceStatus,
  jobStateCodes,
} from "../../../src/contract/custom-resources/batch-resource.ts";
import { textLimits } from "../../../src/contract/limits.ts";
import { isTerminal } from "../../../src/contract/jobs/status.ts";
import { truncate } from "../../../src/contract/text/bounded-text.ts";
import { batchJobCount } from "../../../src/resources/child-compression-job.ts";
import { resolveBatchId } from "../../../src/resources/job-identity.ts";
import { batchConditions } from "./batch-conditions.ts";
import { batchStatusMessage, type BatchSituation } from "./batch-status-message.ts";
import { countEndedJobs, countJobsByStatus } from "./job-counts.ts";
import type { BatchJobStates } from "./job-states.ts";
import { listFailures } from "./list-failures.ts";
import type { ObservedBatchState } from "./observed-batch-state.ts";

/** Equal to the present status where nothing has changed. Terminal statuses stay. */
export function nextBatchStatus(
  observed: ObservedBatchState,
  jobStates: BatchJobStates,
  isSuspended: boolean,
): BatchResourceStatus {
  const { status: before, metadata } = observed.batch;
  if (before !== undefined && isTerminal(before.status)) {
    return { ...before, observedGeneration: metadata.generation ?? 0 };
  }
  return unfinishedBatchStatus(observed, jobStates, isSuspended);
}

/** Without fields that are undefined, for the comparison with the present status. */
function unfinishedBatchStatus(
  observed: ObservedBatchState,
  jobStates: BatchJobStates,
  isSuspended: boolean,
): BatchResourceStatus {
  const { batch, now } = observed;
  const situation = readSituation(observed, jobStates);
  const { status, counts, gatesFailed } = situation;
  const message = truncatedMessage(observed, situation);
  const failures = listFailures(observed, jobStates.states);
  const startedAt = batch.status?.startedAt ?? earliestStart(observed);
  const next: BatchResourceStatus = {
    batchId: resolveBatchId(batch),
    status,
    observedGeneration: batch.metadata.generation ?? 0,
    jobs: batchJobCount(batch),
    finished: `${countEndedJobs(counts)}/${batchJobCount(batch)}`,
    counts,
    gatesFailed,
    marks: jobStates.states.join(""),
    conditions: batchConditions(observed, { status, message, isSuspended }),
  };
  if (message !== undefined) next.statusMessage = message;
  if (failures.length > 0) next.failures = failures;
  if (startedAt !== undefined) next.startedAt = startedAt;
  if (isTerminal(status)) next.finishedAt = now.toISOString();
  return next;
}

function readSituation(
  observed: ObservedBatchState,
  { states, stopping }: BatchJobStates,
): BatchSituation {
  const counts = countJobsByStatus(observed, states);
  const fromJobs = deriveBatchStatus(counts);
  const isCancelling = observed.batch.spec.cancel && !isTerminal(fromJobs);
  const gatesFailed = states.filter((state) => state === jobStateCodes.gateFailed).length;
  return { status: isCancelling ? "Cancelling" : fromJobs, counts, gatesFailed, stopping };
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
