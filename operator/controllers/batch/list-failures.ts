import {
  type BatchResourceStatus,
  jobStateCodes,
  type JobStateCode,
} from "../../../src/contract/custom-resources/batch-resource.ts";
import type { EventReason } from "../../../src/contract/custom-resources/event-reasons.ts";
import { statusLimits } from "../../../src/contract/custom-resources/api-group.ts";
import { batchChildName } from "../../../src/contract/id.ts";
import { textLimits } from "../../../src/contract/limits.ts";
import { truncate } from "../../../src/contract/text/bounded-text.ts";
import { modelTargetPair } from "../../../src/resources/child-compression-job.ts";
import type { ObservedBatchState } from "./observed-batch-state.ts";

type Failures = NonNullable<BatchResourceStatus["failures"]>;

const maxModelName = 100;

/** The first failures. A reported one stays when its CompressionJob is deleted. */
export function listFailures(
  observed: ObservedBatchState,
  states: readonly JobStateCode[],
): Failures {
  const { batch } = observed;
  const reported = batch.status?.failures ?? [];
  const reportedJobs = new Set(reported.map(({ job }) => job));
  const newFailures = states.flatMap((state, index) => {
    const job = batchChildName(batch.metadata.name, index);
    if (state !== jobStateCodes.failed || reportedJobs.has(job)) return [];
    const { model, target } = modelTargetPair(batch, index);
    const name = model.name ?? model.source.slice(-maxModelName);
    return [{ job, model: name, target, ...failureCause(observed, index) }];
  });
  return [...reported, ...newFailures].slice(0, statusLimits.failures);
}

function failureCause(
  { children, nameConflicts }: ObservedBatchState,
  index: number,
): Pick<Failures[number], "reason" | "message"> {
  if (nameConflicts.has(index)) {
    return {
      reason: "NameConflict" satisfies EventReason,
      message: "Another CompressionJob has the name, and does not belong to the Batch",
    };
  }
  const { error, statusReason, statusMessage } = children.get(index)?.status ?? {};
  const message = error?.message ?? statusMessage ?? "";
  return {
    reason: error?.code ?? statusReason ?? "",
    message: truncate(message, textLimits.batchFailure),
  };
}
