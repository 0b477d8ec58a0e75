import { resourceLabels } from "../../contract/custom-resources/resource-labels.ts";
import {
  readTerminationMessage,
  type TerminationMessage,
  workerContainer,
  workerStep,
} from "../../contract/worker-protocol/messages.ts";
import { findDisruption } from "../../resources/disruption.ts";
import type { ObservedPod } from "../../resources/observed-resources.ts";
import { requireNamespace } from "../../kubernetes/namespaces.ts";
import { resources, type Stored } from "../../kubernetes/resources.ts";
import type { AttemptPod as PodRecord } from "../../records/jobs/attempt-records.ts";

/** A pod that works on a job, as far as the service needs it. */
export interface ObservedWorkerPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly jobId: string;
  /** Null when the pod does all of the work. */
  readonly part: PodRecord["part"];
  /** The Job that created it. */
  readonly workerJob: { readonly name: string; readonly uid: string } | undefined;
  readonly serviceAccount: string;
  /** Empty before it has one. */
  readonly node: string;
  /** Whether the worker has ended. */
  readonly hasEnded: boolean;
  /** Whether the worker has started, so that a log may exist. */
  readonly hasRun: boolean;
  /** Why the cluster ends it. */
  readonly disruption: string | undefined;
  readonly terminationMessage: TerminationMessage | undefined;
}

const finalPhases: ReadonlySet<string | undefined> = new Set(["Succeeded", "Failed"]);

export function observedWorkerPod(pod: Stored<ObservedPod>): ObservedWorkerPod {
  const { metadata, spec, status } = pod;
  const { labels = {} } = metadata;
  const { running, terminated } = workerContainerStatus(status)?.state ?? {};
  const index = Number(labels[resourceLabels.completionIndex] ?? 0);
  const step = workerStep.safeParse(labels[resourceLabels.step]).data;
  return {
    namespace: requireNamespace(pod),
    name: metadata.name,
    uid: metadata.uid,
    jobId: labels[resourceLabels.jobId] ?? "",
    part: step === undefined ? null : { step, index },
    workerJob: findWorkerJob(metadata),
    ...readSpec(spec),
    hasEnded: terminated !== undefined || finalPhases.has(status?.phase),
    // A container that failed before its start is terminated without `startedAt`.
    hasRun: running !== undefined || (terminated?.startedAt ?? null) !== null,
    disruption: findDisruption(status)?.cause,
    terminationMessage: readTerminationMessage(terminated?.message),
  };
}

function readSpec({ serviceAccountName = "", nodeName = "" }: ObservedPod["spec"] = {}) {
  return { serviceAccount: serviceAccountName, node: nodeName };
}

function findWorkerJob({ ownerReferences }: Stored<ObservedPod>["metadata"]) {
  return ownerReferences?.find(
    ({ kind, controller }) => controller && kind === resources.jobs.kind,
  );
}

function workerContainerStatus(status: ObservedPod["status"]) {
  return status?.containerStatuses?.find(({ name }) => name === workerContainer);
}
