import assert from "node:assert/strict";
import { test } from "node:test";
import { planWork } from "../../../../operator/controllers/compression-job/decide/plan-work.ts";
import { makeJob, targets } from "../make-job.ts";

test("a job whose operators its target lacks is refused before there is a pod", () => {
  const { spec } = makeJob({ spec: { target: "cpu", recipe: { operators: "contrib" } } });
  assert.deepEqual(planWork(spec, targets), {
    error: {
      code: "recipe_unsupported",
      message: 'The recipe asks for contrib operators, and target "cpu" has the standard ones only',
    },
  });
});
