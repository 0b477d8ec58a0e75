import { resourceLabels } from "../../contract/resource-labels.ts";
import { type TerminationMessage, workerContainer, workerStep } from "../../contract/worker.ts";
import { readTerminationMessage } from "../../resources/read-termination-message.ts";
import type { ObservedPod } from "../../resources/observed-resources.ts";
import type { Stored } from "../../kubernetes/resources.ts";
import type { AttemptPod as PodRecord } from "../../records/attempt-records.ts";

/** What the service needs of a pod that works on a job. */
export interface ObservedWorkerPod {
  readonly name: string;
  readonly uid: string;
  readonly jobId: string;
  /** Null where it does all of the job. */
  readonly part: PodRecord["part"];
  readonly serviceAccount: string | undefined;
  /** Whether nothing of it runs any more. */
  readonly hasEnded: boolean;
  /** Whether the worker has ever run, so that there may be a log. */
  readonly hasRun: boolean;
  /** The worker's last words. */
  readonly terminationMessage: TerminationMessage | undefined;
}

const finalPhases: ReadonlySet<string | undefined> = new Set(["Succeeded", "Failed"]);

export function observedWorkerPod({
  metadata,
  spec,
  status,
}: Stored<ObservedPod>): ObservedWorkerPod {
  const { labels = {} } = metadata;
  const { running, terminated } = workerContainerStatus(status)?.state ?? {};
  const step = workerStep.safeParse(labels[resourceLabels.step]).data;
  return {
    name: metadata.name,
    uid: metadata.uid,
    jobId: labels[resourceLabels.jobId] ?? "",
    part:
      step === undefined
        ? null
        : { step, index: Number(labels[resourceLabels.completionIndex] ?? 0) },
    serviceAccount: spec?.serviceAccountName,
    hasEnded: terminated !== undefined || finalPhases.has(status?.phase),
    // Of a container that was given up before it ran, the kubelet says that it terminated, but not since when it ran.
    hasRun: running !== undefined || (terminated?.startedAt ?? null) !== null,
    terminationMessage: readTerminationMessage(terminated?.message),
  };
}

function workerContainerStatus(status: ObservedPod["status"]) {
  return status?.containerStatuses?.find(({ name }) => name === workerContainer);
}
