import assert from "node:assert/strict";
import { openPageShell, readPage } from "../support/cluster/page-scripts.ts";
import type { NodeCluster } from "../support/cluster/start-cluster.ts";
import { addVolume, namespace, openInstallation, release } from "./installation.ts";

/**
 * From nothing to the first result, and back, by the commands of docs/kubernetes.md: word for word
 * but for the model's address, since pods reach no other network, and the time for its timing. The
 * volume is what a storage class would make.
 */
export async function testGuide(cluster: NodeCluster, modelFile: string): Promise<void> {
  const [page, run] = [await readPage("kubernetes.md"), await openPageShell(cluster)];
  await cluster.kubectl(["delete", "pv", `${namespace}-${release}-service`]);
  await addVolume(cluster, `${release}-service`);
  await run(page.listScripts("Install").at(-1) ?? "");
  const { client } = await openInstallation(cluster, []);
  const { source } = await client.uploadModel(modelFile);

  const [apply = "", follow = ""] = page.listScripts("A first job");
  const model = `source: ${source}\n  recipe: { evaluation: { latencyBudgetSeconds: 1 } }`;
  await run(apply.replace(/source: https:\S+/, model).replace(" --watch", ""));
  const printed = await run(follow);
  assert.match(printed, /condition met/);
  assert.match(printed, /^minilm +Completed +cpu +0\.\d+/m);

  for (const script of page.listScripts("Uninstall")) await run(script);
  const kinds = "crd,clusterroles,clusterrolebindings,validatingadmissionpolicies";
  const left = await run(`kubectl get ${kinds} -o name; kubectl get pods,pvc -o name`);
  assert.doesNotMatch(left, /modeloptimization|model-optimization/);
}
