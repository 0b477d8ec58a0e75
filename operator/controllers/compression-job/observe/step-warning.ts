import type { WorkerJob } from "./worker-job.ts";
import type { WarningEvent } from "./warning-event.ts";
import { podStartTime, isBeingPrepared, type WorkerPod } from "./worker-pod.ts";

/** A pod that is prepared for so long meets with difficulties. */
const preparationMs = 30_000;
/** The cluster repeats a warning about what lasts at least every five minutes. */
const warningRepeatMs = 360_000;

/** Why a step makes no headway, in the cluster's words, and when that is worth telling. Times are milliseconds since 1970. */
export interface StepWarning {
  readonly message: string;
  readonly from: number;
  readonly until: number;
}

/** What the cluster warns of about a Job that has no pods, or a pod that is prepared for long. */
export function findStepWarning(
  workerJob: WorkerJob,
  pods: readonly WorkerPod[],
  listWarnings: (uid: string) => readonly WarningEvent[],
): StepWarning | undefined {
  if (workerJob.end !== undefined || workerJob.deleting || workerJob.suspended) return undefined;
  if (pods.length === 0) return latestWarning(listWarnings(workerJob.uid), workerJob.createdAt);
  const pod = pods.find(isBeingPrepared);
  return pod && latestWarning(listWarnings(pod.uid), podStartTime(pod) + preparationMs);
}

function latestWarning(warnings: readonly WarningEvent[], from: number): StepWarning | undefined {
  const [latest] = warnings.toSorted((one, other) => other.at - one.at);
  if (latest === undefined) return undefined;
  return {
    message: latest.message.replace(/^Error creating: /, ""),
    from,
    until: latest.at + warningRepeatMs,
  };
}

/** Empty where there is nothing to tell now. */
export function currentWarningMessage({
  stepWarning,
  now,
}: {
  readonly stepWarning: StepWarning | undefined;
  readonly now: number;
}): string {
  return stepWarning !== undefined && stepWarning.from <= now && now < stepWarning.until
    ? stepWarning.message
    : "";
}
