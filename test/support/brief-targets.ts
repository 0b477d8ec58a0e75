import { builtinTargets, type Target } from "../../src/contract/jobs/target.ts";

/** Jobs that do not say otherwise time no model: that takes two thirds of a small job's time. */
export function withoutTiming(targets: readonly Target[]): Target[] {
  return targets.map((target) => ({
    ...target,
    recipe: {
      ...target.recipe,
      evaluation: { ...target.recipe.evaluation, latencyBudgetSeconds: 0 },
    },
  }));
}

export const briefTargets = withoutTiming(builtinTargets);
