import type { WorkerJob } from "./worker-job.ts";
import { isBeingPrepared, isHeldBack, mayRun, podStartTime, type WorkerPod } from "./worker-pod.ts";
import type { Stored } from "../../../../src/kubernetes/resources.ts";
import type { ObservedEvent } from "../../../../src/resources/observed-resources.ts";

/** Warnings about a pod matter once its preparation takes so long. */
const preparationMs = 30_000;
/** The cluster repeats a warning about a lasting state at least every five minutes. */
const warningRepeatMs = 360_000;

/** How the Job controller begins to say why it cannot create a pod. */
const creationError = "Error creating: ";

/** The cluster's message about a step that does not advance. Times are milliseconds since 1970. */
export interface StepWarning {
  readonly message: string;
  /** From when until when it is worth a report. */
  readonly from: number;
  readonly until: number;
}

/** The cluster's warning about a worker Job without pods, or about a pod that starts slowly. */
export function findStepWarning(
  workerJob: WorkerJob,
  pods: readonly WorkerPod[],
  listWarnings: (uid: string) => readonly WarningEvent[],
): StepWarning | undefined {
  if (workerJob.end !== undefined || workerJob.deleting || workerJob.suspended) return undefined;
  if (!pods.some(mayRun)) {
    const since = Math.max(workerJob.createdAt, ...pods.map(({ createdAt }) => createdAt));
    const isRefusal = ({ message, at }: WarningEvent) =>
      message.startsWith(creationError) && at >= since;
    return latestWarning(listWarnings(workerJob.uid).filter(isRefusal), since);
  }
  const pod = pods.find(isBeingPrepared) ?? pods.find(isHeldBack);
  return pod && latestWarning(listWarnings(pod.uid), podStartTime(pod) + preparationMs);
}

function latestWarning(warnings: readonly WarningEvent[], from: number): StepWarning | undefined {
  const [latest] = warnings.toSorted((one, other) => other.at - one.at);
  if (latest === undefined) return undefined;
  return {
    message: latest.message.replace(creationError, ""),
    from,
    until: latest.at + warningRepeatMs,
  };
}

/** Empty where there is nothing to report now. */
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

/** Index of warnings by the UID of the involved object. */
export const involvedObjectIndex = "about";

/**
 * Selects the cluster's warnings among events, without those of the operator about its own
 * resources. Why a pod has no node is in the pod's status.
 */
export const warningFieldSelector = [
  "type=Warning",
  "reason!=FailedScheduling",
  "involvedObject.kind!=CompressionJob",
  "involvedObject.kind!=Batch",
].join(",");

/** A warning about a worker Job or a pod. */
interface WarningEvent {
  readonly message: string;
  /** When it was last repeated, milliseconds since 1970. */
  readonly at: number;
}

export function toWarningEvent({
  metadata,
  message = "",
  lastTimestamp,
  eventTime,
}: Stored<ObservedEvent>): WarningEvent {
  return { message, at: Date.parse(lastTimestamp ?? eventTime ?? metadata.creationTimestamp) };
}
