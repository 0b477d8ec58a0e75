import assert from "node:assert/strict";
import test from "node:test";
import { builtinTargets } from "../../../src/contract/jobs/target.ts";
import { createRuntimeMetrics } from "../../../src/controller-runtime/metrics.ts";
import { createClusterExecutor } from "../../../src/executors/cluster/cluster-executor.ts";
import { connectTestCluster } from "../../kubernetes/connect-test-cluster.ts";
import { openTestRecords } from "../../records/new-jobs.ts";
import { clusterMissing } from "../../support/cluster/cluster-missing.ts";
import { until } from "../../support/until.ts";

test("a recorder whose start fails starts again", { skip: clusterMissing }, async (t) => {
  const { client } = await connectTestCluster();
  const records = await openTestRecords();
  const messages: string[] = [];
  let reads = 0;
  const listUnfinishedJobs = async () => {
    if (++reads < 3) throw new Error("The database is busy");
    return records.cluster.listUnfinishedJobs();
  };
  const executor = createClusterExecutor({
    client,
    namespaces: { own: client.namespace, others: [] },
    findUpload: async () => undefined,
    records: { ...records, cluster: { ...records.cluster, listUnfinishedJobs } },
    targets: builtinTargets,
    resourceTtlSeconds: 60,
    workerServiceAccount: "worker",
    acceptsServiceAccountTokens: false,
    metrics: createRuntimeMetrics(),
    now: () => new Date(),
    log: (_level, message) => void messages.push(message),
  });
  t.after(() => executor.close());
  await until("the recorder runs", async () => executor.readinessProblem() === undefined);
  assert.equal(reads, 3);
  assert.equal(messages.length, 2);
  assert.equal(executor.livenessProblem?.(), undefined);
});
