import assert from "node:assert/strict";
import { test } from "node:test";
import { resourceLabels } from "../../src/contract/custom-resources/resource-labels.ts";
import { batchId, batchJobId, jobId, newId } from "../../src/contract/id.ts";
import {
  resolveBatchId,
  workerJobName,
  resolveJobId,
  labelValue,
} from "../../src/resources/job-identity.ts";

const creationTimestamp = "2026-11-21T06:00:00Z";

function resource(
  name: string,
  labels: Record<string, string> = {},
  uid = "3f6d-1",
): Parameters<typeof resolveJobId>[0] {
  return { metadata: { name, uid, creationTimestamp, labels } };
}

test("resolveJobId() takes the label of a resource that is named by its id", () => {
  const id = newId("job", new Date());
  assert.equal(resolveJobId(resource(id, { [resourceLabels.jobId]: id })), id);
});

test("resolveJobId() takes the label of a batch's child", () => {
  const batch = newId("batch", new Date());
  const id = batchJobId(batch, 17);
  const labels = {
    [resourceLabels.batch]: "nightly",
    [resourceLabels.batchId]: batch,
    [resourceLabels.jobId]: id,
  };
  assert.equal(resolveJobId(resource("nightly-0017", labels)), id);
});

test("resolveJobId() makes a valid id that depends on the uid, if there is no label", () => {
  const id = resolveJobId(resource("mine"));
  assert.equal(jobId.parse(id), id);
  assert.equal(resolveJobId(resource("mine")), id);
  assert.notEqual(resolveJobId(resource("mine", {}, "3f6d-2")), id);
});

test("resolveJobId() gives a copy that carries its original's label along an id of its own", () => {
  const id = newId("job", new Date());
  const batch = newId("batch", new Date());
  const childLabels = {
    [resourceLabels.batch]: "nightly",
    [resourceLabels.batchId]: batch,
    [resourceLabels.jobId]: batchJobId(batch, 17),
  };
  assert.notEqual(resolveJobId(resource("copy", { [resourceLabels.jobId]: id })), id);
  for (const name of ["nightly-0018", "rerun-0017"]) {
    const derived = resolveJobId(resource(name, childLabels));
    assert.notEqual(derived, childLabels[resourceLabels.jobId], name);
  }
});

test("resolveJobId() does not take a label that is not an id", () => {
  const id = resolveJobId(resource("job-1", { [resourceLabels.jobId]: "job-1" }));
  assert.equal(jobId.parse(id), id);
});

test("resolveBatchId() takes the label that is the name, and else makes a valid id", () => {
  const id = newId("batch", new Date());
  assert.equal(resolveBatchId(resource(id, { [resourceLabels.batchId]: id })), id);
  const derived = resolveBatchId(resource("nightly", { [resourceLabels.batchId]: id }));
  assert.equal(batchId.parse(derived), derived);
  assert.notEqual(derived, id);
});

test("workerJobName() keeps short names and hashes long ones, differently for names that begin alike", () => {
  assert.equal(workerJobName("voices", "work"), "voices-work");
  const [one, other] = ["a", "b"].map((end) =>
    workerJobName(`${"long-name.".repeat(25)}${end}`, "optimize"),
  );
  for (const name of [one, other]) {
    assert.ok(name !== undefined && name.length <= 52);
    assert.match(name, /^[a-z0-9]([a-z0-9-]*[a-z0-9])?-optimize$/);
  }
  assert.notEqual(one, other);
  assert.notEqual(workerJobName("voices.v1", "work"), workerJobName("voices-v1", "work"));
});

test("labelValue() is a valid value of a label", () => {
  assert.equal(labelValue("voices"), "voices");
  const value = labelValue("long-name.".repeat(25));
  assert.ok(value.length <= 63);
  assert.match(value, /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/);
});
