import assert from "node:assert/strict";
import { test } from "node:test";
import { formatMicroTime } from "../../src/controller-runtime/leadership.ts";
import { resources } from "../../src/kubernetes/resources.ts";
import { clusterMissing } from "../support/cluster/cluster-missing.ts";
import { connectTestCluster } from "./connect-test-cluster.ts";

test("formatMicroTime() writes six fractional digits", () => {
  const ms = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
  assert.equal(formatMicroTime(ms), "2026-01-02T03:04:05.678000Z");
});

test("the API server takes and gives back micro times", { skip: clusterMissing }, async () => {
  const { client } = await connectTestCluster();
  const ms = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
  const lease = await client.create(resources.leases, {
    metadata: { name: "a" },
    spec: { holderIdentity: "me", renewTime: formatMicroTime(ms) },
  });
  assert.equal(lease.spec?.renewTime, formatMicroTime(ms));
});
