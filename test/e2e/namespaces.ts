import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { createClient } from "../../src/client/create-client.ts";
import { apiVersion } from "../../src/contract/custom-resources/api-group.ts";
import { routes } from "../../src/contract/routes/routes.ts";
import { chartFolder, helm, valueFlags } from "../charts/helm.ts";
import { createStepRunner } from "./create-step-runner.ts";
import { type Installation, mountModels, namespace, patience, release } from "./installation.ts";
import type { Models } from "./jobs.ts";

const team = "team";
const restricted = "pod-security.kubernetes.io/enforce=restricted";

/** A release that serves a second namespace for a while. */
export async function testNamespaces(
  group: TestContext,
  installation: Installation,
  { mounted: model }: Models,
): Promise<void> {
  const { cluster, client, baseUrl, untilReady } = installation;
  const step = createStepRunner(group, installation);
  const inTeam = (args: readonly string[], input?: string) =>
    cluster.kubectl(["-n", team, ...args], input);
  const serve = async (namespaces: readonly string[]) => {
    const values = ["--reset-then-reuse-values", ...valueFlags({ namespaces })];
    const args = ["upgrade", release, chartFolder, `--namespace=${namespace}`, ...values];
    await helm(args, cluster.kubeconfig);
    await untilReady();
  };
  const untilCompleted = async (name: string) => {
    await inTeam(["wait", "--for=create", `cpj/${name}`, patience]);
    await inTeam(["wait", `cpj/${name}`, "--for=jsonpath={.status.status}=Completed", patience]);
  };

  await step("another namespace is the project of its name", async () => {
    await cluster.kubectl(["create", "namespace", team]);
    await cluster.kubectl(["label", "namespace", team, restricted]);
    await mountModels(cluster, team);
    await serve([team]);
    const metadata = { name: "theirs" };
    const resource = {
      apiVersion,
      kind: "CompressionJob",
      metadata,
      spec: { model, target: "cpu" },
    };
    await inTeam(["create", "-f", "-"], JSON.stringify(resource));
    await untilCompleted("theirs");
    const id = await inTeam(["get", "cpj/theirs", "-o", "jsonpath={.status.jobId}"]);
    await assert.rejects(client.call("getJob", { params: { id } }), /not_found/);
    const body = {
      name: team,
      scopes: ["jobs:write" as const, "jobs:read" as const],
      project: team,
    };
    const { token } = await client.call("createToken", { body });
    const theirClient = createClient({ routes, baseUrl, token });
    assert.equal((await theirClient.call("getJob", { params: { id } })).status, "Completed");
    const started = await theirClient.call("startCompression", { body: { model, target: "cpu" } });
    await untilCompleted(started.id);
  });

  await step("a namespace that is served no more can be deleted", async () => {
    await inTeam(["delete", "cpj", "--all", patience]);
    await serve([]);
    await cluster.kubectl(["delete", "namespace", team, patience]);
  });
}
