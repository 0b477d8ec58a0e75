import { conditionTypes, recordFinalizer } from "../../../src/contract/custom-resources.ts";
import { isTerminal } from "../../../src/contract/status.ts";
import { combine, type Decision, lookAgainAt, nothing } from "./action.ts";
import { decideWork } from "./decide-work.ts";
import { moveJob, pascalCase } from "./status-change.ts";
import { stopAll } from "./stop-all.ts";
import { mayRun } from "./worker-pod.ts";
import { childrenOf, type World } from "./world.ts";

/** Time after which a pod that should have been stopped is taken for lost with its node. */
const lostMs = 20_000;
/** A Job is kept from its expiry as soon as it comes this near before the job is recorded. */
const expiryMarginMs = 600_000;
const lostReason = "node_unresponsive";
/** A worker whose result the service has heard has this long to end by itself. */
const leaveMs = 30_000;

/**
 * What to do about a CompressionJob. Depends on nothing but the world that it is told, so whoever decides after a crash, between any
 * two actions, goes on where the other stopped.
 *
 * The finalizer `modeloptimization.dev/record` keeps a resource until its logs and result are recorded. Where the operator or the
 * service is gone for good, its user takes it away by hand:
 * `kubectl patch compressionjob NAME --type=merge --patch '{"metadata":{"finalizers":null}}'`.
 */
export function decide(world: World): Decision {
  return combine(removeLostPods(world), keepFromExpiry(world), decideCourse(world));
}

function decideCourse(world: World): Decision {
  const { metadata, spec, status } = world.resource;
  if (isTerminal(status.status)) return settle(world);
  if (spec.cancel || metadata.deletionTimestamp !== undefined || status.status === "Cancelling") return cancel(world);
  return decideWork(world);
}

/** Nothing of a job that has ended runs on, and nothing of it is kept longer than wanted. */
function settle(world: World): Decision {
  const { metadata, spec, status } = world.resource;
  const endedAt = Date.parse(status.finishedAt ?? metadata.creationTimestamp);
  const stopping = stopAll(world);
  if (stopping !== undefined) return isLeaving(world, endedAt) ? lookAgainAt(endedAt + leaveMs) : stopping;
  if (!isRecorded(world)) return nothing;
  if (metadata.finalizers?.includes(recordFinalizer)) return { actions: [{ type: "setFinalizer", held: false }] };
  if (spec.ttlSecondsAfterFinished === undefined || metadata.deletionTimestamp !== undefined) return nothing;
  const expiry = endedAt + spec.ttlSecondsAfterFinished * 1000;
  return expiry <= world.now ? { actions: [{ type: "deleteResource" }] } : lookAgainAt(expiry);
}

/** Whether what is left of a job are workers that have told their result, and the Jobs that wait for them to end. */
function isLeaving({ resource, pods, now }: World, endedAt: number): boolean {
  if (resource.status.status === "Cancelled" || endedAt + leaveMs <= now) return false;
  return !pods.some((pod) => pod.phase === "Pending" && mayRun(pod));
}

function cancel(world: World): Decision {
  const { resource, now } = world;
  const stopping = stopAll(world);
  if (stopping === undefined) {
    const lost = resource.status.statusReason === lostReason ? `: ${resource.status.statusMessage ?? ""}` : "";
    const cause = { reason: "cancelled", message: `The job was cancelled${lost}` };
    const patch = moveJob(resource, { to: "Cancelled", cause }, now);
    if (patch === undefined) return nothing;
    return {
      actions: [
        { type: "confirmStopped" },
        { type: "writeStatus", patch },
        { type: "recordEvent", warning: false, reason: "Cancelled", message: cause.message },
      ],
    };
  }
  const cause = { reason: "cancel_requested", message: "The job is being stopped" };
  const patch = moveJob(resource, { to: "Cancelling", cause }, now);
  return combine(patch ? { actions: [{ type: "writeStatus", patch }] } : nothing, stopping);
}

function removeLostPods({ resource, pods, now }: World): Decision {
  const decisions = pods.filter(mayRun).map(({ name, uid, node, deletedBy }): Decision => {
    if (node === undefined || deletedBy === undefined) return nothing;
    if (deletedBy + lostMs > now) return lookAgainAt(deletedBy + lostMs);
    const message = `The node "${node}" did not confirm that the pod "${name}" stopped, and the pod was removed`;
    const patch = { statusReason: lostReason, statusMessage: message };
    return {
      actions: [
        ...(resource.status.status === "Cancelling" ? [{ type: "writeStatus", patch } as const] : []),
        { type: "recordEvent", warning: true, reason: pascalCase(lostReason), message },
        { type: "removeLostPod", name, uid, node },
      ],
    };
  });
  return combine(...decisions);
}

/** Jobs, and so the logs of their pods, do not expire before the job is recorded. */
function keepFromExpiry(world: World): Decision {
  const recorded = isRecorded(world);
  const decisions = childrenOf(world).map(({ name, end, ttlSeconds, deleting }): Decision => {
    if (end === undefined || deleting) return nothing;
    if (recorded) {
      const { ttlSeconds: seconds } = world.settings;
      return ttlSeconds === undefined ? { actions: [{ type: "setJobTtl", name, seconds }] } : nothing;
    }
    if (ttlSeconds === undefined) return nothing;
    const latest = end.at + ttlSeconds * 1000 - Math.min(expiryMarginMs, ttlSeconds * 500);
    return latest <= world.now ? { actions: [{ type: "setJobTtl", name, seconds: null }] } : lookAgainAt(latest);
  });
  return combine(...decisions);
}

function isRecorded({ resource }: World): boolean {
  const { status, conditions = [] } = resource.status;
  return isTerminal(status) && conditions.some((one) => one.type === conditionTypes.recorded && one.status === "True");
}
