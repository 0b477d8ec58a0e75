import assert from "node:assert/strict";
import { glob, readFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { parse } from "yaml";
import { z } from "zod";
import { actionInputs, actionOutputs } from "../../src/contract/batches/action.ts";

const root = path.join(import.meta.dirname, "../..");

const workflow = z.object({
  permissions: z.record(z.string(), z.string()).optional(),
  jobs: z.record(
    z.string(),
    z.object({
      steps: z.array(
        z.object({
          id: z.string().optional(),
          uses: z.string().optional(),
          with: z.record(z.string(), z.unknown()).default({}),
        }),
      ),
    }),
  ),
});

const files = await Array.fromAsync(
  glob(["docs/workflows/*.yml", ".github/workflows/compress.yml"], { cwd: root }),
);

for (const file of files) {
  test(`${file} uses inputs and outputs that the action has`, async () => {
    const text = await readFile(path.join(root, file), "utf8");
    const steps = Object.values(workflow.parse(parse(text)).jobs).flatMap((job) => job.steps);
    const [step, ...others] = steps.filter(({ uses }) =>
      uses?.startsWith("modeloptimization/compress@"),
    );
    assert.ok(step && others.length === 0);
    for (const input of Object.keys(step.with)) assert.ok(input in actionInputs, input);
    const models = ["models", "batch-file"].filter((input) => input in step.with);
    assert.equal(models.length, 1);
    for (const [, id, output = ""] of text.matchAll(/steps\.(\w+)\.outputs\.([\w-]+)/g)) {
      assert.ok(id !== step.id || output in actionOutputs, output);
    }
  });

  test(`${file} pins the actions of others by their commits, and keeps no credentials`, async () => {
    const text = await readFile(path.join(root, file), "utf8");
    const { permissions, jobs } = workflow.parse(parse(text));
    assert.deepEqual(permissions ?? {}, {});
    for (const { uses, with: inputs } of Object.values(jobs).flatMap((job) => job.steps)) {
      if (uses === undefined || uses.startsWith("modeloptimization/")) continue;
      assert.match(uses, /^[\w-]+\/[\w-]+@[0-9a-f]{40}$/);
      assert.equal(inputs["persist-credentials"], false);
    }
  });
}
