import type { Target } from "../../../../src/contract/target.ts";
import { combineDecisions, type Decision, requeueAt, noActions } from "./decision.ts";
import type { WorkerJob } from "../observe/worker-job.ts";
import { queueName } from "./worker-job-manifest.ts";
import { stopWorkers } from "./stop-workers.ts";
import { reportWait } from "./report-wait.ts";
import { currentWarningMessage } from "../observe/step-warning.ts";
import { findWait, type Wait } from "./find-wait.ts";
import { podStartTime, isFailingToStart, mayRun, type WorkerPod } from "../observe/worker-pod.ts";
import type { ObservedState } from "../observe/observed-state.ts";

/** Waiting that is over sooner is not worth a write. */
const minWaitMs = 3_000;

export const suspendedWait: Wait = { reason: "suspended", message: "The job is suspended" };

interface StepInProgress {
  readonly workerJob: WorkerJob;
  /** Those of the Job. */
  readonly pods: readonly WorkerPod[];
  /** Undefined where there is no such target any more. */
  readonly target: Target | undefined;
}

/** Says what a step waits for that has begun and not ended. */
export function monitorStep(
  observed: ObservedState,
  { workerJob, pods, target }: StepInProgress,
): Decision {
  const { resource, now, settings, stepWarning } = observed;
  if (resource.spec.suspend)
    return combineDecisions(
      reportWait(observed, suspendedWait),
      stopWorkers(observed) ?? noActions,
    );
  if (workerJob.deleting || target === undefined) return noActions;
  const waiting = findWait({
    workerJob,
    pods,
    target,
    queue: queueName(resource),
    stepWarning: currentWarningMessage(observed),
  });
  const reportAt = (waiting?.since ?? -Infinity) + minWaitMs;
  return combineDecisions(
    reportAt > now
      ? requeueAt(reportAt)
      : waiting || areAllScheduled(pods)
        ? reportWait(observed, waiting?.wait)
        : noActions,
    ...pods
      .filter(isFailingToStart)
      .map((pod) => requeueAt(podStartTime(pod) + settings.podStartSeconds * 1000)),
    ...[stepWarning?.from, stepWarning?.until].map((at = 0) =>
      at > now ? requeueAt(at) : noActions,
    ),
  );
}

function areAllScheduled(pods: readonly WorkerPod[]): boolean {
  const running = pods.filter(mayRun);
  return running.length > 0 && running.every(({ node }) => node !== undefined);
}
