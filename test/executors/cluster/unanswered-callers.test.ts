import assert from "node:assert/strict";
import test from "node:test";
import { callerTokenAudience } from "../../../src/contract/people/permissions.ts";
import { ServiceAccountCallers } from "../../../src/executors/cluster/service-account-callers.ts";
import { answer, connectStandIn, refusal } from "../../kubernetes/stand-in-api-server.ts";

test("requests at the same time all learn that the cluster cannot be asked", async () => {
  const uid = "1";
  const username = "system:serviceaccount:ours:ci";
  const audiences = [callerTokenAudience];
  const genuine = { authenticated: true, audiences, user: { username, uid } };
  const { client } = await connectStandIn(
    answer(201, { status: genuine }),
    refusal(403, "Forbidden"),
  );
  const namespaces = { own: client.namespace, others: [] };
  const now = new Date("2026-01-01T00:00:00Z");
  const callers = new ServiceAccountCallers({ client, namespaces, now: () => now });
  const claims = {
    aud: audiences,
    exp: now.getTime() / 1000 + 3600,
    "kubernetes.io": { namespace: client.namespace, serviceaccount: { name: "ci", uid } },
  };
  const token = `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.signature`;
  const requests = [1, 2].map(() => callers.authenticate(token, "readWork"));
  const code = "unavailable";
  await Promise.all(requests.map((request) => assert.rejects(request, { code })));
});
