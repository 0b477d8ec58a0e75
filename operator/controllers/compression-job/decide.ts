import { conditionTypes } from "../../../src/contract/condition.ts";
import { recordFinalizer } from "../../../src/contract/resource-labels.ts";
import { isTerminal } from "../../../src/contract/status.ts";
import { combineDecisions, type Decision, requeueAt, noActions } from "./decision.ts";
import { decideWork } from "./decide-work.ts";
import { transitionPatch, pascalCase } from "./status-patch.ts";
import { stopWorkers } from "./stop-workers.ts";
import { mayRun } from "./worker-pod.ts";
import { ownedWorkerJobs, type ObservedState } from "./observed-state.ts";

/** Time after which a pod that should have been stopped is taken for lost with its node. */
const lostPodMs = 20_000;
/** A Job is kept from its expiry as soon as it comes this near before the job is recorded. */
const ttlMarginMs = 600_000;
const lostReason = "node_unresponsive";
/** A worker whose result the service has heard has this long to end by itself. */
const workerExitMs = 30_000;

/**
 * What to do about a CompressionJob. Depends on nothing but the world that it is told, so whoever decides after a crash, between any
 * two actions, goes on where the other stopped.
 *
 * The finalizer `modeloptimization.dev/record` keeps a resource until its logs and result are recorded. Where the operator or the
 * service is gone for good, its user takes it away by hand:
 * `kubectl patch compressionjob NAME --type=merge --patch '{"metadata":{"finalizers":null}}'`.
 */
export function decide(observed: ObservedState): Decision {
  return combineDecisions(
    removeLostPods(observed),
    delayWorkerJobTtl(observed),
    decideLifecycle(observed),
  );
}

function decideLifecycle(observed: ObservedState): Decision {
  const { metadata, spec, status } = observed.resource;
  if (isTerminal(status.status)) return finalizeEndedJob(observed);
  if (spec.cancel || metadata.deletionTimestamp !== undefined || status.status === "Cancelling")
    return decideCancel(observed);
  return decideWork(observed);
}

/** Nothing of a job that has ended runs on, and nothing of it is kept longer than wanted. */
function finalizeEndedJob(observed: ObservedState): Decision {
  const { metadata, spec, status } = observed.resource;
  const endedAt = Date.parse(status.finishedAt ?? metadata.creationTimestamp);
  const stopping = stopWorkers(observed);
  if (stopping !== undefined)
    return areWorkersExiting(observed, endedAt) ? requeueAt(endedAt + workerExitMs) : stopping;
  if (!isTerminalAndRecorded(observed)) return noActions;
  if (metadata.finalizers?.includes(recordFinalizer))
    return { actions: [{ type: "setFinalizer", present: false }] };
  if (spec.ttlSecondsAfterFinished === undefined || metadata.deletionTimestamp !== undefined)
    return noActions;
  const expiry = endedAt + spec.ttlSecondsAfterFinished * 1000;
  return expiry <= observed.now ? { actions: [{ type: "deleteResource" }] } : requeueAt(expiry);
}

/** Whether what is left of a job are workers that have told their result, and the Jobs that wait for them to end. */
function areWorkersExiting({ resource, pods, now }: ObservedState, endedAt: number): boolean {
  if (resource.status.status === "Cancelled" || endedAt + workerExitMs <= now) return false;
  return !pods.some((pod) => pod.phase === "Pending" && mayRun(pod));
}

function decideCancel(observed: ObservedState): Decision {
  const { resource, now } = observed;
  const stopping = stopWorkers(observed);
  if (stopping === undefined) {
    const lost =
      resource.status.statusReason === lostReason ? `: ${resource.status.statusMessage ?? ""}` : "";
    const cause = { reason: "cancelled", message: `The job was cancelled${lost}` };
    const patch = transitionPatch(resource, { to: "Cancelled", cause }, now);
    if (patch === undefined) return noActions;
    return {
      actions: [
        { type: "confirmStopped" },
        { type: "writeStatus", patch },
        { type: "recordEvent", warning: false, reason: "Cancelled", message: cause.message },
      ],
    };
  }
  const cause = { reason: "cancel_requested", message: "The job is being stopped" };
  const patch = transitionPatch(resource, { to: "Cancelling", cause }, now);
  return combineDecisions(
    patch ? { actions: [{ type: "writeStatus", patch }] } : noActions,
    stopping,
  );
}

function removeLostPods({ resource, pods, now }: ObservedState): Decision {
  const decisions = pods.filter(mayRun).map(({ name, uid, node, deletionDeadline }): Decision => {
    if (node === undefined || deletionDeadline === undefined) return noActions;
    if (deletionDeadline + lostPodMs > now) return requeueAt(deletionDeadline + lostPodMs);
    const message = `The node "${node}" did not confirm that the pod "${name}" stopped, and the pod was removed`;
    const patch = { statusReason: lostReason, statusMessage: message };
    return {
      actions: [
        ...(resource.status.status === "Cancelling"
          ? [{ type: "writeStatus", patch } as const]
          : []),
        { type: "recordEvent", warning: true, reason: pascalCase(lostReason), message },
        { type: "removeLostPod", name, uid, node },
      ],
    };
  });
  return combineDecisions(...decisions);
}

/** Jobs, and so the logs of their pods, do not expire before the job is recorded. */
function delayWorkerJobTtl(observed: ObservedState): Decision {
  const recorded = isTerminalAndRecorded(observed);
  const decisions = ownedWorkerJobs(observed).map(
    ({ name, end, ttlSeconds, deleting }): Decision => {
      if (end === undefined || deleting) return noActions;
      if (recorded) {
        const { ttlSeconds: seconds } = observed.settings;
        return ttlSeconds === undefined
          ? { actions: [{ type: "setWorkerJobTtl", name, seconds }] }
          : noActions;
      }
      if (ttlSeconds === undefined) return noActions;
      const latest = end.at + ttlSeconds * 1000 - Math.min(ttlMarginMs, ttlSeconds * 500);
      return latest <= observed.now
        ? { actions: [{ type: "setWorkerJobTtl", name, seconds: null }] }
        : requeueAt(latest);
    },
  );
  return combineDecisions(...decisions);
}

function isTerminalAndRecorded({ resource }: ObservedState): boolean {
  const { status, conditions = [] } = resource.status;
  return (
    isTerminal(status) &&
    conditions.some((one) => one.type === conditionTypes.recorded && one.status === "True")
  );
}
