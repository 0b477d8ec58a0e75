import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import test from "node:test";
import { parse } from "yaml";
import { z } from "zod";
import { compressionJobSpec } from "../../src/contract/custom-resources/compression-job.ts";
import { job as jobSchema, jobRequest } from "../../src/contract/jobs/job.ts";
import { jobAsCurl, jobAsResource, jobAsStep } from "../../src/dashboard/job/same-job.ts";
import { makeTestApp, startJob } from "../server/test-app.ts";

const gates = { maxSizeRatio: 0.5, warnGates: ["maxSizeRatio" as const] };

async function makeJob(t: Parameters<typeof makeTestApp>[0]) {
  const labels = { note: "true", switch: "on", size: "1_000", day: "2026-01-02" };
  return jobSchema.parse(await startJob(await makeTestApp(t), { gates, labels }));
}

test("the command sends the job's own request, whatever its texts are", async (t) => {
  const job = await makeJob(t);
  const model = { ...job.model, name: "it's" };
  const command = jobAsCurl({ ...job, model, name: "nightly" }, "https://mos.example/v1");
  const shell = `curl() { for last; do :; done; printf %s "$last"; }; ${command}`;
  const { stdout } = await promisify(execFile)("sh", ["-c", shell]);
  const sent = z
    .looseObject({ name: z.string(), model: z.looseObject({ name: z.string() }) })
    .parse(JSON.parse(stdout));
  assert.deepEqual([sent.name, sent.model.name], ["nightly", "it's"]);
  assert.deepEqual(jobRequest.parse({ ...sent, model: { ...sent.model, name: "m" } }).gates, gates);
});

test("the resource has a spec that the operator takes", async (t) => {
  const job = await makeJob(t);
  // kubectl reads YAML 1.1.
  for (const version of ["1.1", "1.2"] as const) {
    const { kind, spec } = parse(jobAsResource(job), { version });
    assert.equal(kind, "CompressionJob");
    const parsed = compressionJobSpec.parse(spec);
    assert.deepEqual(parsed.recipe, job.recipe);
    assert.deepEqual(parsed.labels, job.labels);
  }
});

test("the step has the action's inputs", async (t) => {
  const job = await makeJob(t);
  const changed = { ...job, kind: "quantize" as const, dryRun: true };
  const [step] = parse(jobAsStep(changed, "https://mos.example"));
  assert.equal(step.with.targets, "cpu");
  assert.deepEqual(parse(step.with.gates), gates);
  assert.deepEqual(parse(step.with.recipe), job.recipe);
  assert.deepEqual([step.with.kind, step.with["dry-run"]], ["quantize", "true"]);
});
