import type { Decision } from "./action.ts";
import { finish } from "./finish.ts";
import { followStep } from "./follow-step.ts";
import { planWork } from "./plan-work.ts";
import { startStep } from "./start-step.ts";
import { firstStep, latestChild, podsOf, stepAfter } from "./steps.ts";
import { findEnd } from "./work-end.ts";
import type { World } from "./world.ts";

/** What to do about a job that has neither ended nor been cancelled. */
export function decideWork(world: World): Decision {
  const { plan, error } = planWork(world.resource.spec, world.targets);
  const refusal = { error, told: false, at: world.now };
  const job = latestChild(world);
  if (job === undefined) return plan ? startStep(world, plan, firstStep(plan.shares)) : finish(world, refusal);
  const pods = podsOf(world, job);
  const { now, trouble, settings } = world;
  const end = findEnd({ job, pods, now, trouble, podStartSeconds: settings.podStartSeconds });
  if (end === undefined) return followStep(world, { job, pods, target: plan?.target });
  const next = stepAfter(job);
  if (end.error !== undefined || next === undefined) return finish(world, end);
  return plan ? startStep(world, { ...plan, shares: job.shares }, next) : finish(world, refusal);
}
