import { builtinTargets, type Target } from "../../src/contract/jobs/target.ts";

/** Jobs that do not say otherwise time both models for a tenth of a second, not for twenty. */
export function timeBriefly(targets: readonly Target[]): Target[] {
  return targets.map((target) => ({
    ...target,
    recipe: {
      ...target.recipe,
      evaluation: { ...target.recipe.evaluation, latencyBudgetSeconds: 0.1 },
    },
  }));
}

export const briefTargets = timeBriefly(builtinTargets);
