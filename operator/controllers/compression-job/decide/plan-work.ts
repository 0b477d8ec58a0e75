import { reportSuspended } from "./cancel.ts";
import { deadlineError, remainingDeadlineSeconds } from "./deadline.ts";
import { combineDecisions, type Decision, requeueAt } from "./decision.ts";
import { addFinalizer } from "./after-end.ts";
import { failCompressionJob } from "./job-end.ts";
import { reportWait } from "./report-wait.ts";
import { workerJobManifest } from "./worker-job-manifest.ts";
import { decideRejection } from "./worker-job-rejection.ts";
import {
  type CompressionJobSpec,
  compressionJobSpec,
} from "../../../../src/contract/custom-resources/compression-job.ts";
import type { ConfiguredTarget } from "../../../../src/contract/custom-resources/target-pod.ts";
import { type JobError, ServiceError } from "../../../../src/contract/errors.ts";
import { formatSpecProblems } from "../../../../src/contract/format-problem.ts";
import {
  effectiveRecipe,
  findTarget,
  requireSupportedRecipe,
} from "../../../../src/contract/jobs/resolve-recipe.ts";
import type { JobCosts } from "../../../../src/contract/jobs/telemetry.ts";
import { parseInput } from "../../../../src/contract/parse-input.ts";
import { compressionJobs } from "../../../../src/resources/custom-resources.ts";
import { type JobStep, workerJobName } from "../../../../src/resources/job-identity.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { isOwnedWorkerJob, stepSequences } from "../observe/steps.ts";
import type { WorkerJob } from "../observe/worker-job.ts";
import { mayRun } from "../observe/worker-pod.ts";

interface WorkPlan {
  readonly target: ConfiguredTarget;
  /** Pods that optimize a share of the weights each; 1 if a single pod does all of the work. */
  readonly parallelism: number;
}

type PlanResult =
  | { readonly plan: WorkPlan; readonly error?: never }
  | { readonly plan?: never; readonly error: JobError };

/** The plan for a spec, or the error of a job that cannot be done. */
export function planWork(
  spec: CompressionJobSpec,
  targets: readonly ConfiguredTarget[],
): PlanResult {
  const { data, problems } = parseInput(compressionJobSpec, spec);
  if (problems !== undefined) {
    return { error: { code: "resource_invalid", message: formatSpecProblems(problems) } };
  }
  try {
    return { plan: planSteps(data, targets) };
  } catch (error) {
    if (error instanceof ServiceError) {
      return { error: { code: error.code, message: error.message } };
    }
    throw error;
  }
}

function planSteps(spec: CompressionJobSpec, targets: readonly ConfiguredTarget[]): WorkPlan {
  const { kind, dryRun, recipe, gates } = spec;
  const target = findTarget(targets, spec.target);
  const effective = effectiveRecipe(target, recipe);
  requireSupportedRecipe(effective, target, gates);
  const { parallelism } = effective;
  return { target, parallelism: kind === "compress" && !dryRun ? parallelism : 1 };
}

/** `recipe.parallelism`: a job with several pods runs in three steps. */
export function firstStep(parallelism: number): JobStep {
  return parallelism > 1 ? "shard" : "work";
}

/** Undefined after the last step. */
export function nextStep({ step }: WorkerJob): JobStep | undefined {
  const sequence = stepSequences.find((steps) => step !== undefined && steps.includes(step)) ?? [];
  return sequence[sequence.findIndex((each) => each === step) + 1];
}

/** Pods without their worker Job are deleted soon, or the cache of worker Jobs is behind. */
const orphanRetryMs = 2_000;

/** Creates the worker Job of a step, unless a pod of an earlier one may run. */
export function startStep(observed: ObservedState, plan: WorkPlan, step: JobStep): Decision {
  const { resource, jobId, settings, workerJobRejection, now } = observed;
  if (observed.pods.some(mayRun)) return requeueAt(now + orphanRetryMs);
  if (resource.spec.suspend) return reportSuspended(observed);
  const other = findNameConflict(observed, workerJobName(resource.metadata.name, step));
  if (other !== undefined) return resolveNameConflict(observed, other);
  const deadlineSeconds = remainingDeadlineSeconds(observed);
  if (deadlineSeconds < 1) return failCompressionJob(observed, deadlineError);
  if (workerJobRejection) return decideRejection(observed, workerJobRejection);
  const costs = findCosts(observed, step);
  const manifest = workerJobManifest(
    { ...plan, resource, jobId, step, deadlineSeconds, costs },
    settings,
  );
  const message = `Created the Job "${manifest.metadata?.name ?? ""}"`;
  return {
    actions: [
      ...addFinalizer(observed),
      { type: "createWorkerJob", manifest },
      { type: "recordEvent", warning: false, reason: "Started", message },
    ],
  };
}

/**
 * What a step is known to take before it starts, to size its pod. Those before the last of several
 * take little, or a share of a model that is known only then.
 */
function findCosts({ resource, knownCosts }: ObservedState, step: JobStep): JobCosts | undefined {
  const { spec, status } = resource;
  if (step === "work") return spec.dryRun ? undefined : knownCosts;
  return step === "assemble" ? (status.report?.telemetry?.forecast ?? knownCosts) : undefined;
}

/** The garbage collector needs a moment to delete what a deleted object owned. */
const nameConflictRetryMs = 2_000;

/** A Job with that name that the operator did not create for the resource. */
function findNameConflict(observed: ObservedState, name: string): WorkerJob | undefined {
  return observed.workerJobs.find(
    (workerJob) => workerJob.name === name && !isOwnedWorkerJob(workerJob, observed),
  );
}

/**
 * Waits for the Job of an earlier CompressionJob of the same name, and deletes one of its own that
 * ended under another release; any other fails the job.
 */
function resolveNameConflict(observed: ObservedState, workerJob: WorkerJob): Decision {
  const { name, uid } = workerJob;
  if (hasEndedElsewhere(workerJob, observed)) {
    const retry = requeueAt(observed.now + nameConflictRetryMs);
    return combineDecisions({ actions: [{ type: "deleteWorkerJob", name, uid }] }, retry);
  }
  if (isLeftOver(workerJob, observed)) {
    const owner = "an earlier CompressionJob of this name";
    const message = `Waiting for the Job "${name}" of ${owner} to be deleted`;
    return combineDecisions(
      reportWait(observed, { reason: "name_in_use", message }),
      requeueAt(observed.now + nameConflictRetryMs),
    );
  }
  const owner = describeOwner(workerJob, observed);
  return failCompressionJob(observed, {
    code: "resource_invalid",
    message: `A Job "${name}", which this job needs for itself, is there and ${owner}`,
  });
}

/** Whether the Job is the resource's under the account of a release that was here before. */
function hasEndedElsewhere({ controller, end }: WorkerJob, { resource }: ObservedState): boolean {
  const isOwn =
    controller?.kind === compressionJobs.kind && controller.uid === resource.metadata.uid;
  return isOwn && end !== undefined;
}

/** Whether the Job goes with an owner that is gone: of a name there is one resource. */
function isLeftOver({ controller }: WorkerJob, { resource }: ObservedState): boolean {
  const { name, uid } = resource.metadata;
  const { kind } = compressionJobs;
  return controller?.kind === kind && controller.name === name && controller.uid !== uid;
}

function describeOwner(
  { controller, serviceAccount }: WorkerJob,
  { resource, settings }: ObservedState,
): string {
  if (controller === undefined) return "is not this job's";
  if (controller.uid !== resource.metadata.uid) {
    return `belongs to ${controller.kind} "${controller.name}"`;
  }
  const workers = settings.serviceAccount;
  return `runs under the account "${serviceAccount}", not the workers' "${workers}"`;
}
