import assert from "node:assert/strict";
import test from "node:test";
import { job as jobSchema } from "../../src/contract/jobs/job.ts";
import { createJobFields, readJobForm } from "../../src/dashboard/new-job/read-job-form.ts";
import { makeTestApp, startJob } from "../server/test-app.ts";

const gates = { minCosine: 0.9, maxSizeRatio: 0.5, warnGates: ["maxSizeRatio" as const] };
const labels = { team: "vision" };

async function makeForm(t: Parameters<typeof makeTestApp>[0]) {
  const started = await startJob(await makeTestApp(t), { gates, labels, name: "nightly" });
  const job = jobSchema.parse(started);
  return { job, form: createJobFields(job) };
}

test("the form of a job that is run again has its whole request", async (t) => {
  const { job, form } = await makeForm(t);
  const request = readJobForm(form);
  assert.ok(request);
  assert.deepEqual(request.recipe, job.recipe);
  assert.deepEqual(request.gates, gates);
  assert.deepEqual(request.labels, labels);
  assert.equal(request.name, "nightly");
  assert.equal(request.model.source, job.model.source);
});

test("a job that was only planned can be run by its form", async (t) => {
  const { job } = await makeForm(t);
  const request = readJobForm(createJobFields({ ...job, dryRun: true }));
  assert.ok(request && !request.dryRun);
});

test("a changed form sends what was changed, and says which field of the recipe is wrong", async (t) => {
  const { form } = await makeForm(t);
  form.scheme.value = "int4-weight";
  form.recipe.value = '{ "granularity": "block", "blockSize": 33 }';
  assert.equal(readJobForm(form), undefined);
  assert.match(
    form.messages.value["recipe"] ?? "",
    /^blockSize is 33 and must be 16, 32, 64, 128 or 256$/,
  );
  form.recipe.value = '{ "granularity": "channel" }';
  assert.equal(readJobForm(form), undefined);
  assert.match(form.messages.value["recipe"] ?? "", /^granularity is "channel" and must be block/);
  form.recipe.value = "{";
  assert.equal(readJobForm(form), undefined);
  assert.match(form.messages.value["recipe"] ?? "", /not a JSON object/);
  form.recipe.value = "";
  form.gates.minCosine.value = "";
  const request = readJobForm(form);
  assert.ok(request);
  assert.deepEqual(request.recipe, { scheme: "int4-weight" });
  assert.equal(request.gates?.minCosine, undefined);
});
