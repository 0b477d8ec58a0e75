import assert from "node:assert/strict";
import test from "node:test";
import { warningFieldSelector } from "../../../../operator/controllers/compression-job/observe/step-warning.ts";
import { resources } from "../../../../src/kubernetes/resources.ts";
import { clusterMissing } from "../../../support/cluster/cluster-missing.ts";
import { connectTestCluster } from "../../../kubernetes/connect-test-cluster.ts";

const skip = clusterMissing;

const events = [
  { name: "volume", kind: "Pod", type: "Warning", reason: "FailedMount" },
  { name: "quota", kind: "Job", type: "Warning", reason: "FailedCreate" },
  { name: "no-node", kind: "Pod", type: "Warning", reason: "FailedScheduling" },
  { name: "pulled", kind: "Pod", type: "Normal", reason: "Pulled" },
  { name: "own", kind: "CompressionJob", type: "Warning", reason: "OutOfMemory" },
];

test(
  "warnings of what delays a job are selected, without those in its status or of the operator",
  { skip },
  async () => {
    const { client } = await connectTestCluster();
    const { namespace } = client;
    for (const { name, kind, type, reason } of events) {
      const involvedObject = { kind, name: "a", namespace };
      await client.create(resources.events, {
        metadata: { name },
        involvedObject,
        type,
        reason,
        message: "Odd",
      });
    }
    const pages = await Array.fromAsync(
      client.list(resources.events, { fieldSelector: warningFieldSelector }),
    );
    const names = pages.flatMap(({ items }) => items.map(({ metadata }) => metadata.name));
    assert.deepEqual(names.toSorted(), ["quota", "volume"]);
  },
);
