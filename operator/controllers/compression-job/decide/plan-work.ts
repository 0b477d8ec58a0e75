import { reportSuspended } from "./cancel.ts";
import { deadlineError, remainingDeadlineSeconds } from "./deadline-seconds.ts";
import { type Decision, requeueAt } from "./decision.ts";
import { addFinalizer } from "./after-end.ts";
import { failCompressionJob } from "./job-end.ts";
import { findNameConflict, resolveNameConflict } from "./name-conflict.ts";
import { workerJobManifest } from "./worker-job-manifest.ts";
import { decideRejection } from "./worker-job-rejection.ts";
import {
  type CompressionJobSpec,
  compressionJobSpec,
} from "../../../../src/contract/custom-resources/compression-job.ts";
import type { ConfiguredTarget } from "../../../../src/contract/custom-resources/target-pod.ts";
import { type JobError, ServiceError } from "../../../../src/contract/errors.ts";
import { formatProblem } from "../../../../src/contract/format-problem.ts";
import {
  effectiveRecipe,
  findTarget,
  requireSupportedRecipe,
} from "../../../../src/contract/jobs/resolve-recipe.ts";
import type { JobCosts } from "../../../../src/contract/jobs/telemetry.ts";
import { parseInput } from "../../../../src/contract/parse-input.ts";
import { type JobStep, workerJobName } from "../../../../src/resources/job-identity.ts";
import type { ObservedState } from "../observe/observed-state.ts";
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
    const texts = problems.map(({ path, message }) =>
      formatProblem({ path: ["spec", ...path], message }),
    );
    return { error: { code: "resource_invalid", message: texts.join("; ") } };
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
