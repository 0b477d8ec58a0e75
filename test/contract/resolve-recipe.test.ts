import assert from "node:assert/strict";
import test from "node:test";
import { requestedRecipe } from "../../src/contract/jobs/recipe.ts";
import { defaultRecipe, resolveRecipe } from "../../src/contract/jobs/resolve-recipe.ts";

test("resolveRecipe() lets later layers win field by field, inside nested fields too", () => {
  const resolved = resolveRecipe(
    { scheme: "int8-dynamic", evaluation: { samples: 4, latencyBudgetSeconds: 1 } },
    { reduceRange: true, evaluation: { latencyBudgetSeconds: 2 } },
  );
  assert.deepEqual(resolved, {
    ...defaultRecipe,
    scheme: "int8-dynamic",
    reduceRange: true,
    evaluation: { ...defaultRecipe.evaluation, samples: 4, latencyBudgetSeconds: 2 },
  });
});

test("resolveRecipe() gives the default recipe where no layer says anything", () => {
  assert.deepEqual(resolveRecipe({}), defaultRecipe);
});

test("requestedRecipe names an unknown field", () => {
  const { error } = requestedRecipe.safeParse({ shceme: "fp16" });
  assert.match(String(error), /shceme/);
});
