import { recordFinalizer } from "../../../src/contract/custom-resources.ts";
import { compressionJobs } from "../../../src/kubernetes/custom-resources.ts";
import { childJobName, type JobStep } from "../../../src/kubernetes/job-identity.ts";
import { combine, type Decision, lookAgainAt } from "./action.ts";
import type { ChildJob } from "./child-job.ts";
import { finish } from "./finish.ts";
import { suspended } from "./follow-step.ts";
import { jobManifest } from "./job-manifest.ts";
import type { WorkPlan } from "./plan-work.ts";
import { podsOf } from "./steps.ts";
import { tell } from "./tell.ts";
import { refusalWait } from "./waiting.ts";
import { deadlineError } from "./work-end.ts";
import { mayRun } from "./worker-pod.ts";
import { childrenOf, isChild, type World } from "./world.ts";

/** What the cluster refused may be allowed the next time. */
const refusedMs = 30_000;
/** The garbage collector needs a moment to delete what a deleted object owned. */
const conflictMs = 2_000;
const orphanMs = 2_000;

/** Makes the Job of a step, if nothing of an earlier one runs any more. */
export function startStep(world: World, plan: WorkPlan, step: JobStep): Decision {
  const { resource, settings, jobRefusal, now } = world;
  // Their Job is gone, and they follow it; or it is there, and the cache of Jobs lags behind.
  if (world.pods.some(mayRun)) return lookAgainAt(now + orphanMs);
  if (resource.spec.suspend) return tell(world, suspended);
  const name = childJobName(resource.metadata.name, step);
  const other = world.jobs.find((job) => job.name === name && !isChild(job, resource));
  if (other !== undefined) return resolveConflict(world, other);
  const deadlineSeconds = (resource.spec.deadlineSeconds ?? settings.deadlineSeconds) - workedSeconds(world);
  if (deadlineSeconds < 1) return finish(world, { error: deadlineError, told: false, at: now });
  if (jobRefusal?.final) {
    const message = `The cluster refuses the Job: ${jobRefusal.message}`;
    return finish(world, { error: { code: "pod_start_failed", message }, told: false, at: now });
  }
  if (jobRefusal) return combine(tell(world, refusalWait(jobRefusal.message)), lookAgainAt(now + refusedMs));
  const held = resource.metadata.finalizers?.includes(recordFinalizer);
  const manifest = jobManifest({ ...plan, resource, step, deadlineSeconds }, settings);
  return {
    actions: [...(held ? [] : [{ type: "setFinalizer", held: true } as const]), { type: "createJob", manifest }],
  };
}

/** A Job of an earlier CompressionJob of the same name goes with its owner; any other stays where it is. */
function resolveConflict(world: World, { name, controller }: ChildJob): Decision {
  const { resource, now } = world;
  if (controller?.kind === compressionJobs.kind && controller.name === resource.metadata.name) {
    const message = `Waiting for the Job "${name}" of an earlier CompressionJob of this name to be deleted`;
    return combine(tell(world, { reason: "name_in_use", message }), lookAgainAt(now + conflictMs));
  }
  const owner = controller === undefined ? "is not this job's" : `belongs to ${controller.kind} "${controller.name}"`;
  const message = `A Job "${name}", which this job needs for itself, is there and ${owner}`;
  return finish(world, { error: { code: "resource_invalid", message }, told: false, at: now });
}

/** Seconds that the steps before took. */
function workedSeconds(world: World): number {
  const worked = childrenOf(world).map((job) => {
    const starts = podsOf(world, job).flatMap((pod) => pod.startedAt ?? []);
    const start = starts.length > 0 ? Math.min(...starts) : (job.startedAt ?? job.createdAt);
    return job.end === undefined ? 0 : Math.max(0, job.end.at - start);
  });
  return Math.floor(worked.reduce((sum, ms) => sum + ms, 0) / 1000);
}
