import { type Condition, conditionTypes, type ConditionType } from "../contract/condition.ts";
import type { BatchStatus, JobStatus } from "../contract/status.ts";
import { textLimits } from "../contract/limits.ts";
import { truncate } from "../contract/truncate.ts";
import { isTerminal } from "../contract/status.ts";

type ConditionValue = Omit<Condition, "lastTransitionTime" | "observedGeneration">;

/** The conditions besides `Ready` that are true in each final status. */
const finalConditions = {
  Completed: [conditionTypes.finished, conditionTypes.complete],
  Failed: [conditionTypes.finished, conditionTypes.failed, conditionTypes.stalled],
  Cancelled: [conditionTypes.finished, conditionTypes.stalled],
} as const satisfies Partial<Record<JobStatus, readonly ConditionType[]>>;

/**
 * The conditions by which tools tell how a job or batch is, by the conventions of `kubectl wait`,
 * kstatus, Flux and Helm: `Ready` once it is completed, `Stalled` where it never will be.
 */
export function lifecycleConditions(
  status: JobStatus | BatchStatus,
  message: string,
): ConditionValue[] {
  const reason = status;
  const shortMessage = truncate(message, textLimits.conditionMessage);
  const isReady = status === "Completed";
  const ready = { type: conditionTypes.ready, status: isReady ? "True" : "False" } as const;
  const final = isTerminal(status) ? finalConditions[status] : [];
  return [
    { ...ready, reason, message: shortMessage },
    ...final.map((type): ConditionValue => ({
      type,
      status: "True",
      reason,
      message: shortMessage,
    })),
  ];
}
