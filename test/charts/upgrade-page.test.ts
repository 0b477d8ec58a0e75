import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import test from "node:test";
import { parse } from "yaml";
import { z } from "zod";
import { clusterMissing, helmMissing } from "../support/cluster/cluster-missing.ts";
import { startControlPlane } from "../support/cluster/control-plane.ts";
import { openPageShell, readPage } from "../support/cluster/page-scripts.ts";
import { until } from "../support/until.ts";

const root = join(import.meta.dirname, "../..");
const plurals = ["compressionjobs", "batches"];

const definition = z.object({
  metadata: z.object({ annotations: z.record(z.string(), z.string()).optional() }),
  spec: z.looseObject({ versions: z.array(z.unknown()) }),
});

test("releases change as the page says", { skip: clusterMissing || helmMissing }, async (t) => {
  await using plane = await startControlPlane();
  const shell = await openPageShell(plane);
  const run = (script: string) =>
    shell(script.replaceAll(/ values\.yaml/g, ` ${join(plane.folder, "values.yaml")}`));
  const page = await readPage("upgrade.md");
  /** Without what a cluster without nodes cannot run. */
  const scripts = (title: string) =>
    page
      .listScripts(title)
      .filter((text) => !text.includes("cd ./data"))
      .map((text) => text.replaceAll(/^helm uninstall .*$/gm, "$& --no-hooks"));
  const inNamespace = (name: string) =>
    run(`kubectl config set-context --current --namespace ${name}`);
  const read = async (plural: string) =>
    definition.parse(
      JSON.parse(await run(`kubectl get crd ${plural}.modeloptimization.dev -o json`)),
    );
  const owner = async () =>
    (await read("batches")).metadata.annotations?.["meta.helm.sh/release-name"];
  const assertCurrent = async () => {
    for (const plural of plurals) {
      const file: unknown = parse(await readFile(join(root, `crds/${plural}.yaml`), "utf8"));
      const { versions } = (await read(plural)).spec;
      assert.deepEqual(versions, definition.parse({ ...Object(file) }).spec.versions);
    }
  };
  const outside = async () =>
    run(
      "kubectl get clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings " +
        "-l app.kubernetes.io/name=model-optimization -o name",
    );
  const [byKubectl = "", byHelm = ""] = scripts("The custom resource definitions");
  const [rollback = "", newerDefinitions = "", next = ""] = scripts("Rollback");
  const [rename = ""] = scripts("Another name of the release");
  const [move = ""] = scripts("Another namespace");
  await run("kubectl create namespace models");
  await inNamespace("models");

  await t.test("what kubectl has applied is stored as it is", assertCurrent);

  await t.test("a release takes over definitions that kubectl applied", async () => {
    await run(byHelm);
    assert.equal(await owner(), "model-optimization");
  });

  await t.test("another field manager applies the same without a conflict", async () => {
    await run("kubectl apply --server-side --field-manager=gitops -f crds/");
  });

  await t.test("a release is rolled back to other definitions, and upgraded again", async () => {
    await run("helm uninstall model-optimization --no-hooks");
    const other = join(plane.folder, "other-chart");
    await run(`cp -r charts/model-optimization ${other}`);
    await run(`sed -i 's/- name: Status/- name: State/' ${other}/custom-resources/*.yaml`);
    await run(`helm install model-optimization ${other} --take-ownership --force-conflicts`);
    await assert.rejects(assertCurrent());
    await run(
      `helm upgrade model-optimization charts/model-optimization --reset-then-reuse-values`,
    );
    await assertCurrent();
    await run(rollback);
    await assert.rejects(assertCurrent());
    await run(newerDefinitions);
    await assertCurrent();
    await run(next);
    await assertCurrent();
    // Nothing is left to take over.
    await run(
      "helm upgrade model-optimization charts/model-optimization --reset-then-reuse-values",
    );
  });

  await t.test("a release gets another name", async () => {
    await run(rename.replaceAll("OLD", "model-optimization").replaceAll("NEW", "mos"));
    assert.equal(await owner(), "mos");
    await run(rename.replaceAll("OLD", "mos").replaceAll("NEW", "model-optimization"));
    assert.equal(await owner(), "model-optimization");
  });

  await t.test("a release moves to another namespace", async () => {
    await run(move.replaceAll("OTHER", "elsewhere"));
    await inNamespace("elsewhere");
    assert.match(await run("helm list --short"), /^model-optimization$/m);
    assert.match(await outside(), /elsewhere-model-optimization-workers/);
    assert.doesNotMatch(await outside(), /models-model-optimization/);
  });

  await t.test("kubectl takes over the definitions of a release", async () => {
    await run(byKubectl);
    await assertCurrent();
    await run("helm uninstall model-optimization --no-hooks");
    await assertCurrent();
    await run("helm install model-optimization charts/model-optimization --set crds.enabled=false");
  });

  await t.test("what lies outside of a release's namespace is deleted with it", async () => {
    await run("kubectl delete namespace elsewhere --timeout=60s");
    await until("nothing of the release is left", async () => (await outside()) === "");
  });

  await t.test("what Helm could give no owner is deleted by its label", async () => {
    const install = "helm install made charts/model-optimization --set crds.enabled=false";
    await run(`${install} --namespace made --create-namespace`);
    await run("kubectl delete namespace made --timeout=60s");
    assert.notEqual(await outside(), "");
    const kubernetesPage = await readFile(join(root, "docs/kubernetes.md"), "utf8");
    const [command = ""] = /^kubectl delete clusterroles[^`]*/m.exec(kubernetesPage) ?? [];
    await run(command.replaceAll("=models", "=made"));
    assert.equal(await outside(), "");
  });
});
