import assert from "node:assert/strict";
import { test } from "node:test";
import { clusterMissing, helmMissing } from "../support/cluster/cluster-missing.ts";
import { startControlPlane } from "../support/cluster/control-plane.ts";
import { chartFolder, helm, valueFlags } from "./helm.ts";

const namespace = "models";
const release = ["mos", `--namespace=${namespace}`];
const definitions = ["compressionjobs.modeloptimization.dev", "batches.modeloptimization.dev"];
const job = {
  apiVersion: "modeloptimization.dev/v1",
  kind: "CompressionJob",
  metadata: { name: "kept" },
  spec: { model: { source: "https://models.example/model.onnx" }, target: "cpu" },
};

test(
  "a release is installed, upgraded and uninstalled, and jobs outlive it",
  { skip: clusterMissing || helmMissing },
  async (t) => {
    await using cluster = await startControlPlane();
    const { kubectl, kubeconfig } = cluster;
    const inNamespace = (...args: readonly string[]) => kubectl([...args, "-n", namespace]);
    const put = (command: "install" | "upgrade", values: unknown) =>
      helm(
        [command, ...release, chartFolder, "--create-namespace", ...valueFlags(values)],
        kubeconfig,
      );
    const putOther = (
      place: string,
      values: object,
      command: "install" | "upgrade" = "install",
    ) => {
      const flags = valueFlags({ crds: { enabled: false }, ...values });
      const args = [command, "other", chartFolder, `--namespace=${place}`, "--create-namespace"];
      return helm([...args, ...flags], kubeconfig);
    };
    const may = (account: string, ...action: readonly string[]) =>
      inNamespace("auth", "can-i", ...action, `--as=${account}`).then(
        (answer) => answer.trim() === "yes",
        () => false,
      );
    const account = (component: string) =>
      `system:serviceaccount:${namespace}:mos-model-optimization-${component}`;
    await kubectl(["delete", "crd", ...definitions]);

    await t.test("its kinds can be used", async () => {
      await put("install", {});
      await kubectl([
        "wait",
        "--for=condition=Established",
        "crd",
        ...definitions,
        "--timeout=60s",
      ]);
      await kubectl(["create", "-n", namespace, "-f", "-"], JSON.stringify(job));
    });

    await t.test("each account may do its own work and no more", async () => {
      assert.ok(await may(account("operator"), "create", "jobs.batch"));
      assert.ok(await may(account("service"), "create", "tokenreviews.authentication.k8s.io"));
      assert.ok(!(await may(account("service"), "create", "jobs.batch")));
      assert.ok(!(await may(account("operator"), "get", "secrets")));
      for (const resource of [
        "pods",
        "jobs.batch",
        "compressionjobs.modeloptimization.dev",
        "secrets",
      ]) {
        assert.ok(!(await may(account("worker"), "get", resource)), resource);
      }
    });

    await t.test("an upgrade changes what it says, and keeps jobs", async () => {
      await put("upgrade", { operator: { replicas: 2 } });
      const replicas = [
        "deployment",
        "mos-model-optimization-operator",
        "-o",
        "jsonpath={.spec.replicas}",
      ];
      assert.equal(await inNamespace("get", ...replicas), "2");
      assert.match(await inNamespace("get", "cpj"), /kept +Pending/);
    });

    await t.test("another release that would serve its namespace is refused", async () => {
      const shared = /Namespace "models" is served by the release "mos" of namespace "models"/;
      const others = [
        [namespace, {}],
        ["elsewhere", { namespaces: [namespace] }],
        ["elsewhere", { namespaces: "*" }],
      ] as const;
      for (const [place, values] of others) {
        await assert.rejects(putOther(place, values), shared);
      }
      await putOther("elsewhere", {});
      const taken = /Namespace "elsewhere" is served by the release "other" of/;
      await assert.rejects(put("upgrade", { namespaces: ["elsewhere"] }), taken);
    });

    await t.test(
      "a namespace that does not exist is named before anything is changed",
      async () => {
        const absent = /namespaces: nowhere does not exist: kubectl create namespace nowhere/;
        await assert.rejects(put("upgrade", { namespaces: ["nowhere"] }), absent);
        assert.match(await helm(["list", "--short", ...release.slice(1)], kubeconfig), /^mos$/m);
      },
    );

    await t.test("uninstalled, it leaves kinds, jobs and the service's volume", async () => {
      // There is no node that could run the hook.
      await helm(["uninstall", ...release, "--no-hooks"], kubeconfig);
      assert.match(await inNamespace("get", "cpj"), /kept +Pending/);
      assert.match(
        await inNamespace("get", "persistentvolumeclaim"),
        /mos-model-optimization-service/,
      );
      assert.equal(
        await inNamespace(
          "get",
          "deployment,service,role,configmap",
          "-l",
          "helm.sh/chart",
          "-o",
          "name",
        ),
        "",
      );
    });

    await t.test("another release may take its place, and be the only one", async () => {
      await putOther("elsewhere", { namespaces: "*" }, "upgrade");
      const every = /Every namespace is served by the release "other" of namespace "elsewhere"/;
      await assert.rejects(put("install", {}), every);
      await putOther("elsewhere", { namespaces: [namespace] }, "upgrade");
    });

    await t.test("a release that went with its namespace is in nobody's way", async () => {
      await kubectl(["delete", "namespace", "elsewhere", "--timeout=60s"]);
      const left = ["rolebinding", "other-model-optimization-operator", "-o", "name"];
      assert.notEqual(await inNamespace("get", ...left), "");
    });

    await t.test("installed again, it takes up what it left", async () => {
      await put("install", {});
      assert.match(await inNamespace("get", "cpj"), /kept +Pending/);
    });

    await t.test("moved to a database and a bucket, it leaves its volume", async () => {
      const persistence = { keep: false };
      await put("upgrade", { service: { persistence } });
      const postgres = { existingSecret: "database" };
      const s3 = { existingSecret: "bucket" };
      await put("upgrade", { service: { persistence, postgres, s3 } });
      assert.match(
        await inNamespace("get", "persistentvolumeclaim"),
        /mos-model-optimization-service/,
      );
    });

    await t.test("set not to keep its kinds, it takes all jobs with it", async () => {
      await put("upgrade", { crds: { keep: false }, service: { persistence: { keep: false } } });
      await helm(["uninstall", ...release, "--wait", "--no-hooks"], kubeconfig);
      await assert.rejects(kubectl(["get", "crd", ...definitions]), /not found/);
    });
  },
);
