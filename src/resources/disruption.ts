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
