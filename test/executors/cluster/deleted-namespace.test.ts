import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { z } from "zod";
import { createClient } from "../../../src/client/create-client.ts";
import { apiVersion } from "../../../src/contract/custom-resources/api-group.ts";
import { recordFinalizer } from "../../../src/contract/custom-resources/resource-labels.ts";
import { routes } from "../../../src/contract/routes/routes.ts";
import { render } from "../../charts/helm.ts";
import { spawnOperator, startOperator } from "../../operator/start-operator.ts";
import { clusterMissing, helmMissing } from "../../support/cluster/cluster-missing.ts";
import { type ControlPlane, startControlPlane } from "../../support/cluster/control-plane.ts";
import { startClusterService } from "./cluster-service.ts";

const [own, team] = ["models", "team"];
const release = "mos-model-optimization";
const clusterKinds = ["ClusterRole", "ClusterRoleBinding"];
const namespacedKinds = ["ServiceAccount", "Role", "RoleBinding"];

/** Gives the accounts of a release that serves both namespaces the rights of the chart. */
async function grantAccess({ kubectl }: ControlPlane): Promise<void> {
  const manifests = await render({ namespace: own, values: { namespaces: [team] } });
  const items = manifests.flatMap(({ kind, metadata, ...rest }) => {
    if (clusterKinds.includes(kind)) return [{ ...rest, kind, metadata }];
    if (!namespacedKinds.includes(kind)) return [];
    return [{ ...rest, kind, metadata: { namespace: own, ...metadata } }];
  });
  await kubectl(["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items }));
}

/** The path of a kubeconfig of a component's account. */
async function writeAccess(
  { kubectl, kubeconfig, folder }: ControlPlane,
  component: "operator" | "service",
): Promise<string> {
  const token = await kubectl(["create", "token", `${release}-${component}`, "-n", own]);
  const config = z.looseObject({}).parse(JSON.parse(await readFile(kubeconfig, "utf8")));
  const users = [{ name: "admin", user: { token: token.trim() } }];
  const path = join(folder, `${component}.json`);
  await writeFile(path, JSON.stringify({ ...config, users }));
  return path;
}

const skip = clusterMissing || helmMissing;
const title = "a namespace of several that is deleted in mid-job goes, and its jobs are Cancelled";

test(title, { skip }, async (t) => {
  await using cluster = await startControlPlane();
  const { kubectl } = cluster;
  for (const namespace of [own, team]) await kubectl(["create", "namespace", namespace]);
  await grantAccess(cluster);
  const settings = { MOS_NAMESPACES: team, KUBECONFIG: await writeAccess(cluster, "service") };
  const { client, baseUrl } = await startClusterService(t, { cluster, namespace: own, settings });
  const operatorOptions = {
    kubeconfig: await writeAccess(cluster, "operator"),
    namespace: own,
    environment: { MOS_NAMESPACES: team, MOS_WORKER_SERVICE_ACCOUNT: `${release}-worker` },
  };
  await using operator = await startOperator(operatorOptions);

  const inTeam = (...args: readonly string[]) => kubectl([...args, "-n", team]);
  const read = (resource: string, path: string) =>
    inTeam("get", resource, "-o", `jsonpath={${path}}`);
  const models = [{ source: "https://models.example/model.onnx" }];
  const spec = { models, targets: ["cpu", "cpu-int8"], parallelism: 1 };
  const batch = { apiVersion, kind: "Batch", metadata: { name: "left" }, spec };
  await kubectl(["create", "-n", team, "-f", "-"], JSON.stringify(batch));
  for (const condition of ["create", "jsonpath={.status.statusReason}"]) {
    await inTeam("wait", "cpj/left-0000", `--for=${condition}`, "--timeout=240s");
  }
  assert.deepEqual(JSON.parse(await read("cpj/left-0000", ".metadata.finalizers")), [
    recordFinalizer,
  ]);
  const id = await read("cbatch/left", ".status.batchId");

  await kubectl(["delete", "namespace", team, "--timeout=240s"]);
  const body = { name: team, scopes: ["jobs:read" as const], project: team };
  const { token } = await client.call("createToken", { body });
  const theirClient = createClient({ routes, baseUrl, token });
  const { jobs } = await theirClient.call("getBatch", { params: { id } });
  // A log ends with its job.
  for (const job of jobs) await Array.fromAsync(theirClient.followLogs(job.id));
  const ended = await theirClient.call("getBatch", { params: { id } });
  assert.deepEqual([jobs.length, ended.counts.Cancelled, ended.status], [2, 2, "Cancelled"]);

  await t.test("operator and service start without it, and work for other namespaces", async () => {
    await operator.end("SIGTERM");
    await using restarted = await startOperator(operatorOptions);
    await startClusterService(t, { cluster, namespace: own, settings });
    // Made again without its Roles, it holds no other up either.
    await kubectl(["create", "namespace", team]);
    const job = { model: models[0], target: "cpu" };
    const resource = { apiVersion, kind: "CompressionJob", metadata: { name: "on" }, spec: job };
    await kubectl(["create", "-n", own, "-f", "-"], JSON.stringify(resource));
    await kubectl(["wait", "-n", own, "job/on-work", "--for=create", "--timeout=240s"]);
    await restarted.end("SIGTERM");
  });
  await t.test("the release can be uninstalled", async () => {
    await kubectl(["delete", "namespace", team, "--timeout=240s"]);
    const deployment = `${release}-operator`;
    const image = "--image=example.com/operator:1";
    await kubectl(["create", "deployment", deployment, "-n", own, image, "--replicas=0"]);
    const command = ["uninstall", deployment];
    await using end = spawnOperator({ ...operatorOptions, command });
    assert.equal(await end.ended, 0, end.log.join("\n"));
  });
});
