import type { ObservedPod } from "./observed-resources.ts";

/** Why the cluster ends a pod: preemption, eviction, a drained or lost node. */
interface Disruption {
  readonly cause: string;
  /** RFC 3339. */
  readonly since: string | undefined;
}

export function findDisruption(status: ObservedPod["status"] = {}): Disruption | undefined {
  const { phase, message = "", conditions = [] } = status;
  const target = conditions.find(
    (condition) => condition.type === "DisruptionTarget" && condition.status === "True",
  );
  if (target) return { cause: target.reason ?? "unknown", since: target.lastTransitionTime };
  // A node refuses what the scheduler gave it while its devices are not ready, or it is full or
  // shuts down, and only the kubelet's message says so.
  const isRejected = phase === "Failed" && message.startsWith("Pod was rejected: ");
  return isRejected ? { cause: "RejectedByNode", since: undefined } : undefined;
}

/** What Kubernetes' reasons of the condition `DisruptionTarget`, and ours, say of a pod. */
const disruptionTexts: ReadonlyMap<string, string> = new Map([
  ["EvictionByEvictionAPI", "was evicted, as when its node is drained"],
  ["PreemptionByScheduler", "was preempted by a pod of higher priority"],
  ["DeletionByTaintManager", "was evicted from its node by a taint"],
  ["DeletionByPodGC", "was removed with its node"],
  ["TerminationByKubelet", "was ended by its node, which lacks resources or shuts down"],
  ["NodeUnresponsive", "was removed, since its node does not answer"],
  ["RejectedByNode", "was refused by its node"],
]);

/** Why the cluster ended a pod, for people; follows its name. */
export function describeDisruption(reason: string): string {
  return `${disruptionTexts.get(reason) ?? "was ended by the cluster"} (${reason})`;
}
