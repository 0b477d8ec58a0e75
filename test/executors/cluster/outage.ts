import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "../../../src/client/create-client.ts";
import { apiVersion } from "../../../src/contract/custom-resources/api-group.ts";
import { resourceLabels } from "../../../src/contract/custom-resources/resource-labels.ts";
import { compressionJobs } from "../../../src/resources/custom-resources.ts";
import { operatorLease } from "../../../src/resources/permissions.ts";
import { fastClock, shiftedClock } from "../../support/preloaded-modules.ts";
import type { ControlPlane } from "../../support/cluster/control-plane.ts";
import { realModel } from "../../support/real-models.ts";
import { type ClusterService, startClusterService } from "./cluster-service.ts";
import { type Installation, spawnStandby, startInstallation } from "./installation.ts";
import { spawnWorker } from "./pod-program.ts";
import { printedLines } from "./printed-lines.ts";
import { until } from "../../support/until.ts";

const hourMs = 3_600_000;
/** What an hour of the workers takes that were there before. */
const outageMs = 3_000;
const recipe = {
  dequantize: "run",
  evaluation: { samples: 50, latencyBudgetSeconds: 1 },
} as const;

/** Operator and service are away for an hour, in which pods are evicted and jobs are made. */
export async function testOutage(t: TestContext, controlPlane: ControlPlane): Promise<void> {
  let clock = fastClock(hourMs / outageMs);
  const installation = await startInstallation(t, controlPlane, {
    startProgram: ({ environment, ...place }) =>
      spawnWorker({ ...place, environment: { ...environment, NODE_OPTIONS: clock } }),
  });
  const { service, node } = installation;
  const { client } = service;
  const { source } = await client.uploadModel(realModel("ocr-orientation"));
  const body = { model: { source }, target: "cpu", recipe };
  const batch = await client.call("submitBatch", {
    body: { models: [{ source }], targets: ["cpu", "cpu-int8"], recipe, parallelism: 1 },
  });
  const [first = "", second = ""] = batch.jobs.map(({ id }) => id);
  // A batch's job starts later: the one that is evicted might have ended before.
  for await (const _ of client.followLogs(first)) break;
  // It does not end before it is evicted.
  const evaluation = { ...recipe.evaluation, samples: 200 };
  const longer = { ...body, recipe: { ...recipe, evaluation } };
  const { id: evicted } = await client.call("startCompression", { body: longer });
  for (const id of [first, evicted]) await untilEvaluated(client, id);

  const next = await runDuringOutage(t, installation, async () => {
    clock = "";
    await evictPod(service, evicted);
    const metadata = { name: "made" };
    const job = { apiVersion, kind: "CompressionJob", metadata, spec: body };
    const flags = ["-n", service.namespace, "-f", "-"];
    await controlPlane.kubectl(["create", ...flags], JSON.stringify(job));
  });
  const made = await until("the new job is known", async () => {
    return (await service.api.get(compressionJobs, "made")).status?.jobId;
  });
  for (const id of [evicted, first, second, made]) {
    const lines = await Array.fromAsync(next.client.followLogs(id), ({ text }) => text);
    const { status, error } = await next.client.call("getJob", { params: { id } });
    assert.equal(status, "Completed", error?.message);
    const printed = node.jobOutputs(id).map(printedLines);
    assert.equal(printed.length, id === evicted ? 2 : 1, `pods of ${id}`);
    if (id !== evicted) assert.deepEqual(lines, printed[0]);
  }
  const { jobs } = await next.client.call("listJobs", { query: { limit: "100" } });
  assert.equal(jobs.length, 4);
}

async function untilEvaluated(client: Client, id: string): Promise<void> {
  for await (const { text } of client.followLogs(id)) if (text.includes("[evaluate]")) return;
}

/** Kills operator and service, and starts them again when an hour has passed by all clocks. */
async function runDuringOutage(
  t: TestContext,
  { service, operator }: Installation,
  happen: () => Promise<void>,
): Promise<ClusterService> {
  await Promise.all([service.stop("SIGKILL"), operator.end("SIGKILL")]);
  await Promise.all([happen(), delay(outageMs)]);
  const later = { NODE_OPTIONS: shiftedClock(hourMs) };
  // It would have run out.
  const { cluster, namespace } = service;
  await cluster.kubectl(["delete", "lease", operatorLease, "-n", namespace]);
  const [again] = await Promise.all([
    startClusterService(t, { cluster, namespace, settings: later }, service),
    spawnStandby(t, service, later).logged("Leading"),
  ]);
  return again;
}

async function evictPod({ cluster, namespace }: ClusterService, jobId: string): Promise<void> {
  const selector = `${resourceLabels.jobId}=${jobId}`;
  const inNamespace = ["-n", namespace];
  const pod = await cluster.kubectl(["get", "pods", "-l", selector, "-o", "name", ...inNamespace]);
  const name = pod.trim().replace("pod/", "");
  const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name } };
  const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`;
  await cluster.kubectl(["create", "--raw", path, "-f", "-"], JSON.stringify(eviction));
}
