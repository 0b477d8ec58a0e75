import assert from "node:assert/strict";
import { once } from "node:events";
import test from "node:test";
import type { Client } from "../../src/client/create-client.ts";
import { postgresMissing, s3Missing } from "../support/cluster/cluster-missing.ts";
import { balanceConnections } from "../support/balance-connections.ts";
import { callUntil } from "../support/call-until.ts";
import { followJob } from "../support/follow-job.ts";
import { realModel } from "../support/real-models.ts";
import { type RunningService, startRunningService } from "../support/running-service.ts";
import { replicateService } from "../support/replicated-service.ts";

const skip = postgresMissing || s3Missing;
const recipe = { evaluation: { level: "none" } } as const;

test(
  "any replica serves any request, and takes over the jobs of one that is killed",
  { skip },
  async (t) => {
    const { startReplica } = await replicateService(t, { MOS_WORKERS: "1" });
    const [one, other] = [await startReplica(), await startReplica()];
    const { source } = await one.client.uploadModel(realModel("voice-v5"));
    const submit = (client: Client) =>
      client.call("startCompression", { body: { model: { source }, target: "cpu", recipe } });
    const jobs = [];
    for (let i = 0; i < 3; i++) jobs.push(await submit(one.client), await submit(other.client));
    const followed = jobs.map(({ id }) => followJob(other.client, id));
    // Both work, each with its one worker: one of the first jobs is that of the first replica.
    await Promise.race(followed.slice(0, 2));
    one.process.kill("SIGKILL");
    await once(one.process, "exit");
    for (const { lines, status } of await Promise.all(followed)) {
      assert.equal(status, "Completed");
      assert.deepEqual(
        lines.map(({ seq }) => seq),
        lines.map((_, i) => i + 1),
      );
    }
    const { artifacts } = await other.client.call("getJob", { params: { id: jobs[0]?.id ?? "" } });
    assert.notEqual(artifacts.length, 0);
  },
);

test("replicas that are restarted one after the other fail no request", { skip }, async (t) => {
  const environment = {
    MOS_STOP_DELAY_SECONDS: "2",
    MOS_QUOTAS: "{requestsPerMinute: 1000000000}",
  };
  const { startReplica } = await replicateService(t, environment);
  await using balancer = await balanceConnections();
  const port = ({ baseUrl }: RunningService) => Number(new URL(baseUrl).port);
  const start = async () => {
    const replica = await startReplica();
    balancer.ports.add(port(replica));
    return replica;
  };
  const replicas = [await start(), await start()];
  const stop = new AbortController();
  const { origin } = balancer;
  const load = callUntil(stop.signal, { origin, token: replicas[0]?.token ?? "" });
  for (const replica of replicas) {
    await start();
    replica.process.kill("SIGTERM");
    balancer.ports.delete(port(replica));
    await once(replica.process, "exit");
  }
  stop.abort();
  const { calls, failures } = await load;
  t.diagnostic(`${calls} calls`);
  assert.deepEqual(failures, []);
});

test("a token that one replica revokes is refused by another at once", { skip }, async (t) => {
  const { startReplica } = await replicateService(t);
  const [one, other] = [await startReplica(), await startReplica()];
  const { id, token } = await one.client.call("createToken", {
    body: { name: "short", scopes: ["jobs:read"] },
  });
  const list = () =>
    fetch(`${other.baseUrl}/jobs`, { headers: { authorization: `Bearer ${token}` } });
  assert.equal((await list()).status, 200);
  await one.client.callEmpty("revokeToken", { params: { id } });
  assert.equal((await list()).status, 401);
});

test("a replica whose files would be in a folder of its own is refused", { skip }, async (t) => {
  const { startReplica, environment } = await replicateService(t);
  await startReplica();
  const { MOS_DATABASE_URL = "" } = environment;
  const alone = startRunningService(t, { environment: { MOS_DATABASE_URL } });
  await assert.rejects(alone, /did not start/);
});
