import { decideCancel, isCancelRequested } from "./cancel.ts";
import { remainingDeadlineSeconds } from "./deadline.ts";
import { type Action, combineDecisions, type Decision } from "./decision.ts";
import { deleteExpiredWorkerJobs, finalizeEndedJob } from "./after-end.ts";
import {
  endAsReported,
  failCompressionJob,
  findStepEnd,
  finishCompressionJob,
  followReport,
} from "./job-end.ts";
import { reportAttempts } from "./report-attempts.ts";
import { removeLostPods } from "./lost-pods.ts";
import { monitorStep, requestSyncs } from "./monitor-step.ts";
import { firstStep, nextStep, planWork, startStep } from "./plan-work.ts";
import { updateConditions } from "./status-patch.ts";
import { isTerminal } from "../../../../src/contract/jobs/status.ts";
import type { JobStep } from "../../../../src/resources/job-identity.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { currentWarningMessage } from "../observe/step-warning.ts";
import { latestWorkerJob, workerJobPods } from "../observe/steps.ts";

/**
 * What to do about a CompressionJob. Depends on nothing but the observed state: after a crash
 * between any two actions, the next decision continues from there.
 */
export function decide(observed: ObservedState): Decision {
  const decision = combineDecisions(
    removeLostPods(observed),
    deleteExpiredWorkerJobs(observed),
    requestSyncs(observed),
    decideLifecycle(observed),
  );
  return reportGeneration(observed, decision);
}

/** A changed spec is reported as observed, also where nothing else is written about it. */
function reportGeneration(observed: ObservedState, decision: Decision): Decision {
  const { resource } = observed;
  const { observedGeneration } = resource.status;
  const { generation } = resource.metadata;
  if (observedGeneration === undefined || observedGeneration === generation) return decision;
  if (decision.actions.some(isOverridingAction)) return decision;
  const patch = { observedGeneration: generation, conditions: updateConditions(observed, []) };
  const write: Action = { type: "writeStatus", patch };
  return { ...decision, actions: [write, ...decision.actions] };
}

/** After these the resource is written anyway, decided about again, or gone. */
function isOverridingAction({ type }: Action): boolean {
  return type === "writeStatus" || type === "observeNodes" || type === "deleteResource";
}

function decideLifecycle(observed: ObservedState): Decision {
  const { resource } = observed;
  if (isTerminal(resource.status.status)) return finalizeEndedJob(observed);
  const ended = endAsReported(observed);
  if (ended !== undefined) return ended;
  return isCancelRequested(resource) ? decideCancel(observed) : decideWork(observed);
}

/** What to do about a job that has neither ended nor been cancelled. */
function decideWork(observed: ObservedState): Decision {
  const workerJob = latestWorkerJob(observed);
  if (workerJob === undefined) return planAndStartStep(observed);
  const { now, settings } = observed;
  const pods = workerJobPods(observed, workerJob);
  const warningMessage = currentWarningMessage(observed);
  const { podStartSeconds } = settings;
  const deadlineSeconds = remainingDeadlineSeconds(observed);
  const step = { workerJob, pods, now, warningMessage, podStartSeconds, deadlineSeconds };
  const end = findStepEnd(step);
  if (end === undefined) {
    return combineDecisions(
      followReport(observed, pods) ?? monitorStep(observed, { workerJob, pods }),
      reportAttempts(observed, { workerJob, pods }),
    );
  }
  const next = nextStep(workerJob);
  if (end.error !== undefined || next === undefined) return finishCompressionJob(observed, end);
  return planAndStartStep(observed, { step: next, parallelism: workerJob.parallelism });
}

/** Starts a step, by default the first, or fails a job that cannot be done. */
function planAndStartStep(
  observed: ObservedState,
  next?: { readonly step: JobStep; readonly parallelism: number },
): Decision {
  const { plan, error } = planWork(observed.resource.spec, observed.targets);
  if (plan === undefined) return failCompressionJob(observed, error);
  const { target, parallelism } = plan;
  const { step, ...rest } = next ?? { step: firstStep(parallelism), parallelism };
  return startStep(observed, { target, ...rest }, step);
}
