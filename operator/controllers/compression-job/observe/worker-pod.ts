import type { JobSettings } from "./job-settings.ts";
import { parseOptionalTime } from "./worker-job.ts";
import { resourceLabels } from "../../../../src/contract/custom-resources/resource-labels.ts";
import { workerContainer } from "../../../../src/contract/worker-protocol/messages.ts";
import type { Stored } from "../../../../src/kubernetes/resources.ts";
import { findDisruption } from "../../../../src/resources/disruption.ts";
import type { ObservedPod } from "../../../../src/resources/observed-resources.ts";

/** How a worker's process ended. */
interface Termination {
  readonly exitCode: number;
  /** Reason of the kubelet, for instance `OOMKilled`. */
  readonly reason: string;
  /** The termination message. */
  readonly message: string;
  readonly at: number;
}

/** What decisions need of a worker's pod. Times are milliseconds since 1970. */
export interface WorkerPod {
  readonly name: string;
  readonly uid: string;
  /** UID of the Job that created it. */
  readonly workerJobUid: string | undefined;
  /** Of the share that it works on; 0 where pods have none. */
  readonly index: number;
  readonly node: string | undefined;
  readonly createdAt: number;
  /** When the kubelet started to prepare it. */
  readonly startedAt: number | undefined;
  readonly phase: string;
  /** Of the pod as a whole, for instance `Evicted` or `DeadlineExceeded`. */
  readonly reason: string;
  readonly message: string;
  /** Why the cluster ends it: preemption, eviction, a drained or lost node. */
  readonly disruption: string | undefined;
  /** Since when it does. */
  readonly disruptedAt: number | undefined;
  /** When the kubelet of a deleted pod should have stopped it, by this process' clock. */
  readonly deletionDeadline: number | undefined;
  /** Why it has no node. */
  readonly unscheduled:
    | { readonly reason: string; readonly message: string; readonly since: number }
    | undefined;
  /** Why the container does not start. */
  readonly waiting: { readonly reason: string; readonly message: string } | undefined;
  /** When this process first saw that it cannot be started, where it did. */
  readonly failingSince: number | undefined;
  /** When this process first saw it run, of a job that has not begun. */
  readonly runningSince: number | undefined;
  readonly termination: Termination | undefined;
}

type PodStatus = NonNullable<ObservedPod["status"]>;

/** `deletionSeenAt`: when this process saw that the pod is being deleted. */
export function toWorkerPod(
  { metadata, spec, status = {} }: Stored<ObservedPod>,
  deletionSeenAt: number,
): WorkerPod {
  const { phase = "Pending", startTime, reason = "", message = "" } = status;
  const disruption = findDisruption(status);
  return {
    name: metadata.name,
    uid: metadata.uid,
    workerJobUid: metadata.ownerReferences?.find((owner) => owner.controller)?.uid,
    index: Number(metadata.labels?.[resourceLabels.completionIndex] ?? 0),
    node: spec?.nodeName,
    createdAt: Date.parse(metadata.creationTimestamp),
    startedAt: parseOptionalTime(startTime),
    phase,
    reason,
    message,
    disruption: disruption?.cause,
    disruptedAt: parseOptionalTime(disruption?.since),
    deletionDeadline: readDeletionDeadline(metadata, deletionSeenAt),
    unscheduled: readUnscheduled(status, metadata.creationTimestamp),
    ...readContainerState(status, metadata.creationTimestamp),
    failingSince: undefined,
    runningSince: undefined,
  };
}

/** Whether a process of the pod runs, or may start. */
export function mayRun({ phase, node, deletionDeadline }: WorkerPod): boolean {
  if (phase === "Succeeded" || phase === "Failed") return false;
  return node !== undefined || deletionDeadline === undefined;
}

export function isWorking(pod: WorkerPod): boolean {
  return pod.phase === "Running" && mayRun(pod);
}

/** Reasons of waiting containers that need no intervention. */
const transientReasons: ReadonlySet<string> = new Set(["", "ContainerCreating", "PodInitializing"]);

/** Whether the kubelet cannot start the pod's container; it retries. */
export function isFailingToStart({ waiting, phase }: WorkerPod): boolean {
  return phase === "Pending" && waiting !== undefined && !transientReasons.has(waiting.reason);
}

/** Whether a node is preparing the pod: mounts its volumes or pulls its image. */
export function isBeingPrepared(pod: WorkerPod): boolean {
  return (
    pod.phase === "Pending" &&
    pod.node !== undefined &&
    pod.deletionDeadline === undefined &&
    !isFailingToStart(pod)
  );
}

/** Whether the scheduler does not look at the pod yet: a claim of devices it names is missing. */
export function isHeldBack({ phase, node, unscheduled, deletionDeadline }: WorkerPod): boolean {
  const isUnseen = node === undefined && unscheduled === undefined;
  return phase === "Pending" && isUnseen && deletionDeadline === undefined;
}

export function podStartTime({ startedAt, createdAt }: WorkerPod): number {
  return startedAt ?? createdAt;
}

function readDeletionDeadline(
  { deletionTimestamp, deletionGracePeriodSeconds = 0 }: Stored<ObservedPod>["metadata"],
  seenAt: number,
): number | undefined {
  return deletionTimestamp === undefined ? undefined : seenAt + deletionGracePeriodSeconds * 1000;
}

function readUnscheduled(
  { conditions = [] }: PodStatus,
  createdAt: string,
): WorkerPod["unscheduled"] {
  const condition = conditions.find(({ type }) => type === "PodScheduled");
  if (condition?.status !== "False") return undefined;
  const { reason = "", message = "", lastTransitionTime = createdAt } = condition;
  return { reason, message, since: Date.parse(lastTransitionTime) };
}

function readContainerState({ containerStatuses = [] }: PodStatus, createdAt: string) {
  const { waiting, terminated } =
    containerStatuses.find(({ name }) => name === workerContainer)?.state ?? {};
  return {
    waiting: waiting && { reason: waiting.reason ?? "", message: waiting.message ?? "" },
    termination: terminated && {
      exitCode: terminated.exitCode,
      reason: terminated.reason ?? "",
      message: terminated.message ?? "",
      at: Date.parse(terminated.finishedAt ?? createdAt),
    },
  };
}

/** Whether a pod with a job's id runs a worker: others may have been given the label by anybody. */
export function isWorkerPod(
  { spec }: Stored<ObservedPod>,
  { serviceAccount }: Pick<JobSettings, "serviceAccount">,
): boolean {
  return spec?.serviceAccountName === serviceAccount;
}
