import type { JobStep } from "../../../../src/resources/job-identity.ts";
import type { Decision } from "./decision.ts";
import { finishCompressionJob } from "./finish-compression-job.ts";
import { monitorStep } from "./monitor-step.ts";
import { planWork } from "./plan-work.ts";
import { startStep } from "./start-step.ts";
import { firstStep, latestWorkerJob, workerJobPods, nextStep } from "../observe/steps.ts";
import { currentWarningMessage } from "../observe/step-warning.ts";
import { findStepEnd } from "./find-step-end.ts";
import type { ObservedState } from "../observe/observed-state.ts";

/** What to do about a job that has neither ended nor been cancelled. */
export function decideWork(observed: ObservedState): Decision {
  const { resource, targets, now, settings } = observed;
  const workerJob = latestWorkerJob(observed);
  if (workerJob === undefined) return planAndStartStep(observed);
  const pods = workerJobPods(observed, workerJob);
  const warningMessage = currentWarningMessage(observed);
  const end = findStepEnd({
    workerJob,
    pods,
    now,
    warningMessage,
    podStartSeconds: settings.podStartSeconds,
  });
  const target = targets.find(({ name }) => name === resource.spec.target);
  if (end === undefined) return monitorStep(observed, { workerJob, pods, target });
  const step = nextStep(workerJob);
  if (end.error !== undefined || step === undefined) return finishCompressionJob(observed, end);
  return planAndStartStep(observed, { step, parallelism: workerJob.parallelism });
}

/** Begins a step, the first where none is named, or ends a job that cannot be done. */
function planAndStartStep(
  observed: ObservedState,
  next?: { readonly step: JobStep; readonly parallelism: number },
): Decision {
  const { plan, error } = planWork(observed.resource.spec, observed.targets);
  if (plan === undefined)
    return finishCompressionJob(observed, { error, reportedByWorker: false, at: observed.now });
  const { step, parallelism } = next ?? {
    step: firstStep(plan.parallelism),
    parallelism: plan.parallelism,
  };
  return startStep(observed, { target: plan.target, parallelism }, step);
}
