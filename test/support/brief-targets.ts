import { builtinTargets, type Target } from "../../src/contract/jobs/target.ts";

/** Targets with another default for the time that both models are timed. */
export function timeFor(latencyBudgetSeconds: number, targets: readonly Target[]): Target[] {
  return targets.map((target) => ({
    ...target,
    recipe: {
      ...target.recipe,
      evaluation: { ...target.recipe.evaluation, latencyBudgetSeconds },
    },
  }));
}

/** Of jobs that time nothing: that takes two thirds of a small job's time. */
export const briefTargets = timeFor(0, builtinTargets);
