import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { createClient } from "../../src/client/create-client.ts";
import { routes } from "../../src/contract/routes/routes.ts";
import { chartFolder, helm, valueFlags } from "../charts/helm.ts";
import { s3FileContent, startS3Server } from "../storage/s3-server.ts";
import { callUntil } from "../support/call-until.ts";
import type { NodeCluster } from "../support/cluster/start-cluster.ts";
import { startPostgres } from "../support/postgres-server.ts";
import { realModel } from "../support/real-models.ts";
import { entrance, patience, values } from "./installation.ts";

const release = "replicas";
const namespace = "replicated";
const service = `deployment/${release}-model-optimization-service`;

/** A release on PostgreSQL and a bucket, whose service is restarted under load and in mid-job. */
export async function testReplicas(t: TestContext, cluster: NodeCluster): Promise<void> {
  const kubectl = (...args: readonly string[]) => cluster.kubectl(["-n", namespace, ...args]);
  await cluster.kubectl(["create", "namespace", namespace]);
  const storage = await createStorage(t, cluster);
  const flags = valueFlags({ ...values, worker: { image: values.worker.image }, ...storage });
  const place = `--namespace=${namespace}`;
  await helm(["install", release, chartFolder, place, ...flags], cluster.kubeconfig);
  await cluster.kubectl(["create", "-n", namespace, "-f", "-"], JSON.stringify(entrance));
  const untilReady = () => kubectl("rollout", "status", service, patience);
  await untilReady();

  const command = "node src/service/main.ts token create --name admin --scopes admin";
  const token = (await kubectl("exec", service, "--", ...command.split(" "))).trim();
  const path = "jsonpath={.spec.ports[0].nodePort}";
  const port = await kubectl("get", "service/entrance", "-o", path);
  const origin = `http://${cluster.nodeAddress}:${port}`;
  const client = createClient({ routes, baseUrl: `${origin}/v1`, token });
  const { source } = await client.uploadModel(realModel("ocr-orientation"));
  const body = { model: { source }, target: "cpu" };
  const { id } = await client.call("startCompression", { body });

  const stop = new AbortController();
  const load = callUntil(stop.signal, { origin, token });
  await kubectl("rollout", "restart", service);
  await untilReady();
  stop.abort();
  const { calls, failures } = await load;
  t.diagnostic(`${calls} calls`);
  assert.deepEqual(failures, []);
  assert.equal(
    (await kubectl("get", service, "-o", "jsonpath={.status.readyReplicas}")).trim(),
    "2",
  );
  await kubectl("wait", `cpj/${id}`, "--for=jsonpath={.status.status}=Completed", patience);
}

/** Starts database and bucket where pods reach them; gives the values that name them. */
async function createStorage(t: TestContext, cluster: NodeCluster): Promise<object> {
  const { url } = await startPostgres(t, cluster.hostAddress);
  const { access } = await startS3Server(t, cluster.hostAddress);
  const secrets = {
    database: { url },
    bucket: { "s3.yaml": s3FileContent(access) },
  };
  for (const [name, stringData] of Object.entries(secrets)) {
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { name }, stringData };
    await cluster.kubectl(["create", "-n", namespace, "-f", "-"], JSON.stringify(secret));
  }
  return {
    service: {
      replicas: 2,
      postgres: { existingSecret: "database", key: "url" },
      s3: { existingSecret: "bucket" },
      quotas: { requestsPerMinute: 1_000_000_000 },
    },
  };
}
