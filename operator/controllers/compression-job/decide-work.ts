import type { JobStep } from "../../../src/kubernetes/job-identity.ts";
import type { Decision } from "./action.ts";
import { finish } from "./finish.ts";
import { followStep } from "./follow-step.ts";
import { planWork } from "./plan-work.ts";
import { startStep } from "./start-step.ts";
import { firstStep, latestChild, podsOf, stepAfter } from "./steps.ts";
import { currentTrouble } from "./trouble.ts";
import { findEnd } from "./work-end.ts";
import type { World } from "./world.ts";

/** What to do about a job that has neither ended nor been cancelled. */
export function decideWork(world: World): Decision {
  const { resource, targets, now, settings } = world;
  const job = latestChild(world);
  if (job === undefined) return beginStep(world);
  const pods = podsOf(world, job);
  const trouble = currentTrouble(world);
  const end = findEnd({ job, pods, now, trouble, podStartSeconds: settings.podStartSeconds });
  const target = targets.find(({ name }) => name === resource.spec.target);
  if (end === undefined) return followStep(world, { job, pods, target });
  const step = stepAfter(job);
  if (end.error !== undefined || step === undefined) return finish(world, end);
  return beginStep(world, { step, shares: job.shares });
}

/** Begins a step, the first where none is named, or ends a job that cannot be done. */
function beginStep(world: World, next?: { readonly step: JobStep; readonly shares: number }): Decision {
  const { plan, error } = planWork(world.resource.spec, world.targets);
  if (plan === undefined) return finish(world, { error, told: false, at: world.now });
  const { step, shares } = next ?? { step: firstStep(plan.shares), shares: plan.shares };
  return startStep(world, { target: plan.target, shares }, step);
}
