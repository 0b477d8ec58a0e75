import type { JobAttempts } from "../../../../src/contract/custom-resources/compression-job.ts";
import { workerExit } from "../../../../src/contract/worker-protocol/exit-codes.ts";
import { textLimits } from "../../../../src/contract/limits.ts";
import { truncate } from "../../../../src/contract/text/truncate.ts";
import { describeDisruption } from "../../../../src/resources/disruption.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import type { WorkerJob } from "../observe/worker-job.ts";
import { isWorking, type WorkerPod } from "../observe/worker-pod.ts";
import { type Action, combineDecisions, type Decision, noActions } from "./decision.ts";
import {
  isFailedAttempt,
  podEndTime,
  readPodEnd,
  wasStoppedByDeletion,
} from "./pod-failure-policy.ts";

interface Loss {
  readonly pod: string;
  readonly at: string;
  readonly reason: string;
  readonly message: string;
}

/** Reports pods of a step that were lost, and the attempts that follow. */
export function reportAttempts(
  observed: ObservedState,
  { workerJob, pods }: { readonly workerJob: WorkerJob; readonly pods: readonly WorkerPod[] },
): Decision {
  const before = observed.resource.status.attempts;
  const losses = pods
    .flatMap((pod) => findLoss(pod, workerJob) ?? [])
    .filter((loss) => before === undefined || isLater(loss, before))
    .toSorted((one, other) => (isLater(one, other) ? 1 : -1));
  const last = losses.at(-1) ?? before;
  if (last === undefined) return noActions;
  const lost = (before?.lost ?? 0) + losses.length;
  const next = pods.find((pod) => hasBegunAfter(pod, last.at));
  const count = Math.max(before?.count ?? 1, next === undefined ? lost : lost + 1);
  const begun = next !== undefined && count > (before?.count ?? 1) ? [next] : [];
  if (losses.length + begun.length === 0) return noActions;
  const { pod, at, reason, message } = last;
  const attempts: JobAttempts = { count, lost, pod, at, reason, message };
  return combineDecisions(
    { actions: [{ type: "writeStatus", patch: { attempts } }] },
    { actions: losses.map(lossEvent) },
    { actions: begun.map(({ name }) => attemptEvent(count, name)) },
  );
}

function lossEvent({ message }: Loss): Action {
  return { type: "recordEvent", warning: true, reason: "PodLost", message };
}

function attemptEvent(count: number, pod: string): Action {
  const message = `Attempt ${count} works in the pod "${pod}"`;
  return { type: "recordEvent", warning: false, reason: "AttemptStarted", message };
}

/** Losses have an order, so that none is counted twice. */
function isLater(one: Pick<Loss, "at" | "pod">, other: Pick<Loss, "at" | "pod">): boolean {
  return one.at === other.at ? one.pod > other.pod : one.at > other.at;
}

function hasBegunAfter(pod: WorkerPod, at: string): boolean {
  return isWorking(pod) && pod.disruption === undefined && pod.createdAt >= Date.parse(at) - 1000;
}

/** Why another pod has to do the work of this one; undefined where it does it itself. */
function findLoss(pod: WorkerPod, { suspended }: WorkerJob): Loss | undefined {
  const { disruption, termination } = pod;
  if (disruption !== undefined) {
    const details = pod.message === "" ? "" : `: ${pod.message}`;
    return toLoss(pod, disruption, `${describeDisruption(disruption)}${details}`);
  }
  if (wasStoppedByDeletion(pod) && !suspended) return toLoss(pod, "worker_killed", "was deleted");
  if (!isFailedAttempt(pod) || termination?.exitCode === workerExit.failed) return undefined;
  const { error } = readPodEnd(pod);
  if (error === undefined) throw new TypeError(`The failed pod "${pod.name}" has no error`);
  return toLoss(pod, error.code, `failed: ${error.message}`);
}

function toLoss(pod: WorkerPod, reason: string, text: string): Loss {
  const at = new Date(pod.disruptedAt ?? podEndTime(pod)).toISOString();
  const message = truncate(`The pod "${pod.name}" ${text}`, textLimits.conditionMessage);
  return { pod: pod.name, at, reason, message };
}
