import { workerContainer } from "../../../../src/contract/worker.ts";
import type { ObservedPod } from "../../../../src/resources/observed-resources.ts";
import type { Stored } from "../../../../src/kubernetes/resources.ts";

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
  readonly node: string | undefined;
  readonly createdAt: number;
  /** When the kubelet started to prepare it. */
  readonly startedAt: number | undefined;
  readonly phase: string;
  /** Of the pod as a whole, for instance `Evicted` or `DeadlineExceeded`. */
  readonly reason: string;
  readonly message: string;
  /** Whether preemption, eviction, or a drained or lost node ends it. */
  readonly disrupted: boolean;
  /** When the kubelet should have stopped a pod that is being deleted, by this process' clock. */
  readonly deletionDeadline: number | undefined;
  /** Why it has no node. */
  readonly unscheduled:
    | { readonly reason: string; readonly message: string; readonly since: number }
    | undefined;
  /** Why the container does not start. */
  readonly waiting: { readonly reason: string; readonly message: string } | undefined;
  readonly termination: Termination | undefined;
}

type PodStatus = NonNullable<ObservedPod["status"]>;

/** `deletionSeenAt`: when this process saw that the pod is being deleted. */
export function toWorkerPod(
  { metadata, spec, status = {} }: Stored<ObservedPod>,
  deletionSeenAt: number,
): WorkerPod {
  const { phase = "Pending", startTime, reason = "", message = "", conditions = [] } = status;
  return {
    name: metadata.name,
    uid: metadata.uid,
    workerJobUid: metadata.ownerReferences?.find((owner) => owner.controller)?.uid,
    node: spec?.nodeName,
    createdAt: Date.parse(metadata.creationTimestamp),
    startedAt: parseOptionalTime(startTime),
    phase,
    reason,
    message,
    disrupted: conditions.some(
      ({ type, status: value }) => type === "DisruptionTarget" && value === "True",
    ),
    deletionDeadline: readDeletionDeadline(metadata, deletionSeenAt),
    unscheduled: readUnscheduled(status, metadata.creationTimestamp),
    ...readContainerState(status, metadata.creationTimestamp),
  };
}

/** Whether a process of the pod runs, or may start. */
export function mayRun({ phase, node, deletionDeadline }: WorkerPod): boolean {
  if (phase === "Succeeded" || phase === "Failed") return false;
  return node !== undefined || deletionDeadline === undefined;
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

export function podStartTime({ startedAt, createdAt }: WorkerPod): number {
  return startedAt ?? createdAt;
}

function readDeletionDeadline(
  { deletionTimestamp, deletionGracePeriodSeconds = 0 }: Stored<ObservedPod>["metadata"],
  seenAt: number,
): number | undefined {
  return deletionTimestamp === undefined ? undefined : seenAt + deletionGracePeriodSeconds * 1000;
}

function parseOptionalTime(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text);
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
