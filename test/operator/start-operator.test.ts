import assert from "node:assert/strict";
import { test } from "node:test";
import { resources } from "../../src/kubernetes/resources.ts";
import { clusterMissing } from "../support/cluster/cluster-missing.ts";
import { createTestNamespace } from "../support/cluster/shared-cluster.ts";
import { observeJobs } from "./compression-job/observe-jobs.ts";
import { startOperator } from "./start-operator.ts";

const lease = "model-optimization-operator";
const options = { skip: clusterMissing };

test("waiting tests fail with the output of an operator that lost its Lease", options, async () => {
  const { cluster, namespace } = await createTestNamespace();
  await using jobs = await observeJobs(cluster, namespace);
  await using _ = await startOperator({ kubeconfig: cluster.kubeconfig, namespace });
  const waiting = assert.rejects(
    jobs.untilTrue(() => false),
    /ended by itself with 1:[^]*The lease is now held by "another"/,
  );
  await jobs.client.patch(resources.leases, lease, { spec: { holderIdentity: "another" } });
  await waiting;
});
