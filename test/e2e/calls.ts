import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { operatorOwnPermissions, operatorPermissions } from "../../src/resources/permissions.ts";
import { createStepRunner } from "./create-step-runner.ts";
import { type Installation, release } from "./installation.ts";

/** Permissions that the operator uses only in failures, or needs without a call. */
const rareCalls = [
  // Where the API server checks owner references.
  "update compressionjobs/finalizers",
  "update batches/finalizers",
  // A worker Job of the same name exists, or a TTL would delete Jobs before their log is recorded.
  "get jobs",
  "patch jobs",
  // Pods on lost nodes, or that cannot be stopped.
  "get pods",
  "patch pods/status",
  "delete pods",
  // A Job without pods, and milestones that come again.
  "list events",
  "get events",
  "patch events",
  // Another operator leads.
  "watch leases",
  // At its end, to find out whether the namespace is being deleted.
  "get namespaces",
];

const printMetrics =
  "fetch('http://127.0.0.1:8081/metrics').then((answer) => answer.text()).then(console.log)";

/** What the operator asked of the API server since it began. */
export async function testCalls(group: TestContext, installation: Installation): Promise<void> {
  const step = createStepRunner(group, installation);
  const { kubectl } = installation;

  await step(
    "no call is refused, and the operator's Role allows nothing without a use",
    async () => {
      const operator = `deployment/${release}-operator`;
      const metrics = await kubectl(["exec", operator, "--", "node", "-e", printMetrics]);
      assert.doesNotMatch(metrics, /mos_kubernetes_call_seconds_count\{.*code="403"/);
      const calls = metrics.matchAll(
        /mos_kubernetes_call_seconds_count\{verb="(\w+)",resource="([\w/]+)"/g,
      );
      const made = new Set(Array.from(calls, ([, verb, resource]) => `${verb} ${resource}`));
      const permissions = [...operatorPermissions, ...operatorOwnPermissions];
      const allowed = permissions.flatMap(({ resources, verbs }) =>
        resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
      );
      assert.deepEqual(
        allowed.filter((call) => !made.has(call) && !rareCalls.includes(call)),
        [],
      );
      for (const component of ["operator", "service"]) {
        const log = await kubectl(["logs", `deployment/${release}-${component}`]);
        assert.doesNotMatch(log, /forbidden/i);
      }
    },
  );
}
