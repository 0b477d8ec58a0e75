import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Registry } from "prom-client";
import {
  registerUnfinishedJobs,
  unfinishedJobIndexers,
} from "../../../operator/controllers/compression-job/failure-metrics.ts";
import { watchResource } from "../../../src/controller-runtime/watch-resource.ts";
import { compressionJobs } from "../../../src/resources/custom-resources.ts";
import { type Answer, answer, connectStandIn } from "../../kubernetes/stand-in-api-server.ts";

test("jobs that wait or run are counted in their namespaces", async () => {
  const items = [
    job("a", "one", "Completed"),
    job("b", "one", "Pending"),
    job("c", "one", "Optimizing"),
    job("d", "two"),
    job("e", "three", "Cancelled"),
  ];
  const { client } = await connectStandIn(
    answer(200, { metadata: { resourceVersion: "9" }, items }),
    silent,
  );
  const watched = watchResource({
    client,
    log: () => {},
    type: compressionJobs,
    indexers: unfinishedJobIndexers,
  });
  after(() => watched.stop());
  const registry = new Registry();
  registerUnfinishedJobs(registry, watched);
  await watched.synced;
  const lines = (await registry.metrics()).split("\n").filter((line) => line.startsWith("mos_"));
  assert.deepEqual(lines, [
    'mos_unfinished_jobs{job_namespace="one"} 2',
    'mos_unfinished_jobs{job_namespace="two"} 1',
  ]);
});

function job(name: string, namespace: string, status?: string): object {
  const metadata = { name, namespace, uid: name, resourceVersion: "1" };
  return { metadata, status: status && { status } };
}

/** A watch that brings nothing. */
const silent: Answer = (_, response) => response.writeHead(200).flushHeaders();
