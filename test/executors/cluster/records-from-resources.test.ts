import assert from "node:assert/strict";
import test from "node:test";
import {
  batchFromResource,
  jobFromResource,
} from "../../../src/executors/cluster/records-from-resources.ts";
import { targets } from "../../records/new-jobs.ts";
import { makeResource } from "./make-resource.ts";

// The API server checks only how a source begins.
const model = { source: "https://[" };
const namespace = "team";

test("a job whose source is no URL has a record, so that its worker can say so", () => {
  const { metadata, spec } = makeResource();
  const resource = { metadata: { ...metadata, namespace }, spec: { ...spec, model } };
  assert.equal(jobFromResource(resource, targets).model.name, "model");
});

test("a batch in which one source is no URL has a record of all its jobs", () => {
  const { metadata, spec } = makeResource();
  const { model: other, target, ...shared } = spec;
  const batch = { ...shared, models: [other, model], targets: [target], parallelism: 1 };
  const resource = { metadata: { ...metadata, namespace }, spec: { ...batch, failFast: false } };
  const { jobs } = batchFromResource(resource, targets);
  assert.deepEqual(
    jobs.map((job) => job.model.name),
    ["detector.onnx", "model"],
  );
});
