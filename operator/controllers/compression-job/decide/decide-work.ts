import type { JobStep } from "../../../../src/resources/job-identity.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { currentWarningMessage } from "../observe/step-warning.ts";
import { latestWorkerJob, workerJobPods } from "../observe/steps.ts";
import { remainingDeadlineSeconds } from "./deadline-seconds.ts";
import type { Decision } from "./decision.ts";
import { failCompressionJob, finishCompressionJob } from "./finish-compression-job.ts";
import { findStepEnd } from "./find-step-end.ts";
import { monitorStep } from "./monitor-step.ts";
import { firstStep, nextStep } from "./parallelism.ts";
import { planWork } from "./plan-work.ts";
import { startStep } from "./start-step.ts";

/** What to do about a job that has neither ended nor been cancelled. */
export function decideWork(observed: ObservedState): Decision {
  const workerJob = latestWorkerJob(observed);
  if (workerJob === undefined) return planAndStartStep(observed);
  const { now, settings } = observed;
  const pods = workerJobPods(observed, workerJob);
  const warningMessage = currentWarningMessage(observed);
  const { podStartSeconds } = settings;
  const deadlineSeconds = remainingDeadlineSeconds(observed);
  const step = { workerJob, pods, now, warningMessage, podStartSeconds, deadlineSeconds };
  const end = findStepEnd(step);
  if (end === undefined) return monitorStep(observed, { workerJob, pods });
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
