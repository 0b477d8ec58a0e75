import assert from "node:assert/strict";
import test from "node:test";
import { workerContainer } from "../../../src/contract/worker-protocol/messages.ts";
import { observedWorkerPod } from "../../../src/executors/cluster/observed-worker-pod.ts";

test("a pod that its node refuses as the kubelet starts again was taken away by the cluster", () => {
  const startedAt = "2026-03-01T00:00:00Z";
  const { hasRun, disruption } = observedWorkerPod({
    metadata: {
      name: "pod",
      namespace: "default",
      uid: "pod",
      resourceVersion: "1",
      creationTimestamp: startedAt,
    },
    status: {
      phase: "Failed",
      reason: "UnexpectedAdmissionError",
      message: "Pod was rejected: Allocate failed due to requested number of devices unavailable",
      containerStatuses: [
        { name: workerContainer, state: { terminated: { exitCode: 137, startedAt } } },
      ],
    },
  });
  assert.deepEqual({ hasRun, disruption }, { hasRun: true, disruption: "RejectedByNode" });
});
