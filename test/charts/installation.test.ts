import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { createClient } from "../../src/client/create-client.ts";
import { routes } from "../../src/contract/routes.ts";
import type { Target } from "../../src/contract/target.ts";
import { operatorOwnPermissions, operatorPermissions } from "../../src/resources/permissions.ts";
import { helmMissing, nodeMissing, opensslMissing } from "../support/cluster/cluster-missing.ts";
import { imageNames } from "../support/cluster/image-builds.ts";
import { startCluster } from "../support/cluster/start-cluster.ts";
import { realModel } from "../support/real-models.ts";
import { chartFolder, helm, valueFlags } from "./helm.ts";

const run = promisify(execFile);
const namespace = "models";
/** Another namespace that the release serves. */
const team = "team";
const release = "model-optimization";
const patience = "--timeout=180s";
const cpu: Target = {
  name: "cpu",
  description: "Any CPU.",
  executionProvider: "cpu",
  operators: "standard",
  recipe: { scheme: "int8-weight" },
  presets: {},
};
const targets: Target[] = [
  cpu,
  { ...cpu, name: "gpu", gpu: { resource: "nvidia.com/gpu", count: 1 }, scratch: "1Gi" },
  { ...cpu, name: "elsewhere", nodeSelector: { pool: "none" } },
];

/** Measures errors of weights, but does not run the models. */
const quick = { evaluation: { level: "weights" } } as const;
const modelFile = realModel("ocr-orientation");
const values = {
  image: imageValues(imageNames.service),
  worker: {
    image: imageValues(imageNames.worker),
    allowedRoots: ["/models"],
    volumes: [{ name: "models", configMap: { name: "models" } }],
    volumeMounts: [{ name: "models", mountPath: "/models", readOnly: true }],
  },
  service: { type: "NodePort", persistence: { enabled: false } },
  namespaces: [team],
  targets,
};

test(
  "an installation in a namespace of restricted pods runs jobs of kubectl and of the REST interface",
  { skip: nodeMissing || helmMissing || opensslMissing },
  async (t) => {
    await using cluster = await startCluster({ images: ["service", "worker"] });
    const kubectl = (args: readonly string[], input?: string) =>
      cluster.kubectl(["-n", namespace, ...args], input);
    const make = (kind: string, name: string, spec: object) => {
      const resource = { apiVersion: "modeloptimization.dev/v1", kind, metadata: { name }, spec };
      return kubectl(["create", "-f", "-"], JSON.stringify(resource));
    };
    const readResourceField = (resource: string, path: string) =>
      kubectl(["get", resource, "-o", `jsonpath={${path}}`]);
    const untilStatus = (resource: string, status: string) =>
      kubectl(["wait", resource, `--for=jsonpath={.status.status}=${status}`, patience]);
    const folder = await mkdtemp(join(tmpdir(), "installation-"));
    t.after(() => rm(folder, { recursive: true }));
    await cluster.kubectl([
      "delete",
      "crd",
      "compressionjobs.modeloptimization.dev",
      "batches.modeloptimization.dev",
    ]);
    const restricted = "pod-security.kubernetes.io/enforce=restricted";
    for (const each of [namespace, team]) {
      await cluster.kubectl(["create", "namespace", each]);
      await cluster.kubectl(["label", "namespace", each, restricted]);
      const file = `--from-file=orientation.onnx=${modelFile}`;
      await cluster.kubectl(["create", "configmap", "models", file, "-n", each]);
    }
    const runHelm = (...args: readonly string[]) =>
      helm([...args, `--namespace=${namespace}`], cluster.kubeconfig);
    const untilReady = async () => {
      for (const component of ["operator", "service"]) {
        await kubectl(["rollout", "status", `deployment/${release}-${component}`, patience]);
      }
    };
    await runHelm("install", release, chartFolder, ...valueFlags(values));
    await untilReady();
    const tokenCommand = "node src/service/main.ts token create --name admin --scopes admin".split(
      " ",
    );
    const token = (
      await kubectl(["exec", `deployment/${release}-service`, "--", ...tokenCommand])
    ).trim();
    const port = await readResourceField(`service/${release}-service`, ".spec.ports[0].nodePort");
    const client = createClient({
      routes,
      baseUrl: `http://${cluster.nodeAddress}:${port}/v1`,
      token,
    });
    const { sha256 } = await client.uploadModel(modelFile);
    const model = { source: `upload:sha256:${sha256}`, name: "orientation" };

    await t.test(
      "a job of kubectl completes, and the REST interface has it with its files",
      async () => {
        await make("CompressionJob", "first", {
          model,
          target: "gpu",
          gates: { maxSizeRatio: 0.5 },
        });
        await untilStatus("cpj/first", "Completed");
        const id = await readResourceField("cpj/first", ".status.jobId");
        const { status, gates } = await client.call("getJob", { params: { id } });
        assert.equal(status, "Completed");
        assert.equal(gates[0]?.passed, true);
        const file = join(folder, "model.onnx");
        await client.downloadArtifact(id, "model.onnx", { file });
        assert.ok((await stat(file)).size > 100_000);
      },
    );

    await t.test("a job of the REST interface completes as a resource, with its log", async () => {
      const { id } = await client.call("startQuantization", {
        body: { model, target: "cpu", recipe: quick },
      });
      await untilStatus(`cpj/${id}`, "Completed");
      const lines = await Array.fromAsync(client.followLogs(id));
      assert.ok(lines.length > 0);
      assert.match(await kubectl(["get", "cpj", id]), /Completed/);
    });

    await t.test("a model on a volume of the workers is found, and nothing beside it", async () => {
      const plan = { target: "cpu", dryRun: true };
      await make("CompressionJob", "mounted", {
        ...plan,
        model: { source: "file:///models/orientation.onnx" },
      });
      await make("CompressionJob", "curious", { ...plan, model: { source: "file:///etc/passwd" } });
      await untilStatus("cpj/mounted", "Completed");
      await untilStatus("cpj/curious", "Failed");
      assert.equal(
        await readResourceField("cpj/curious", ".status.statusReason"),
        "model_source_refused",
      );
    });

    await t.test("a batch makes its jobs and ends with them", async () => {
      await make("Batch", "nightly", {
        models: [model],
        targets: ["cpu", "gpu"],
        parallelism: 1,
        recipe: quick,
      });
      await untilStatus("cbatch/nightly", "Completed");
      assert.match(
        await kubectl(["get", "cpj", "-l", "modeloptimization.dev/batch=nightly"]),
        /nightly-0000[^]*nightly-0001/,
      );
    });

    await t.test("another namespace is the project of its name", async () => {
      const apiVersion = "modeloptimization.dev/v1";
      const source = { source: "file:///models/orientation.onnx" };
      const spec = { model: source, target: "cpu", recipe: quick };
      const metadata = { name: "theirs" };
      const resource = { apiVersion, kind: "CompressionJob", metadata, spec };
      const inTeam = (args: readonly string[], input?: string) =>
        cluster.kubectl(["-n", team, ...args], input);
      await inTeam(["create", "-f", "-"], JSON.stringify(resource));
      const completed = "--for=jsonpath={.status.status}=Completed";
      await inTeam(["wait", "cpj/theirs", completed, patience]);
      const id = await inTeam(["get", "cpj/theirs", "-o", "jsonpath={.status.jobId}"]);
      await assert.rejects(client.call("getJob", { params: { id } }), /not_found/);
      const { token: teamToken } = await client.call("createToken", {
        body: { name: "team", scopes: ["jobs:write", "jobs:read"], project: team },
      });
      const baseUrl = `http://${cluster.nodeAddress}:${port}/v1`;
      const teamClient = createClient({ routes, baseUrl, token: teamToken });
      assert.equal((await teamClient.call("getJob", { params: { id } })).status, "Completed");
      const started = await teamClient.call("startCompression", {
        body: { model: source, target: "cpu", recipe: quick },
      });
      await inTeam(["wait", "--for=create", `cpj/${started.id}`, patience]);
      await inTeam(["wait", `cpj/${started.id}`, completed, patience]);
    });

    await t.test("a job that no node fits says so, and is cancelled", async () => {
      await make("CompressionJob", "waits", { model, target: "elsewhere" });
      await kubectl(["wait", "cpj/waits", "--for=jsonpath={.status.statusMessage}", patience]);
      assert.match(await readResourceField("cpj/waits", ".status.statusMessage"), /node/);
      await kubectl(["patch", "cpj", "waits", "--type=merge", '--patch={"spec":{"cancel":true}}']);
      await untilStatus("cpj/waits", "Cancelled");
      assert.equal(
        await kubectl(["get", "pods", "-l", "modeloptimization.dev/job=waits", "-o", "name"]),
        "",
      );
    });

    await t.test("a job that several pods share completes", async () => {
      await make("CompressionJob", "shared", {
        model,
        target: "gpu",
        recipe: { ...quick, parallelism: 2 },
      });
      await untilStatus("cpj/shared", "Completed");
    });

    await t.test("resources that were to be deleted after their end are deleted", async () => {
      const ttlSecondsAfterFinished = 0;
      await make("CompressionJob", "brief", {
        model,
        target: "cpu",
        dryRun: true,
        ttlSecondsAfterFinished,
      });
      await make("Batch", "passing", {
        models: [model],
        targets: ["cpu"],
        dryRun: true,
        ttlSecondsAfterFinished,
      });
      await kubectl(["wait", "cpj/brief", "cbatch/passing", "--for=delete", patience]);
    });

    await t.test(
      "the release's test passes, and its Secret signs an administrator in",
      async () => {
        await runHelm("test", release);
        const notes = await runHelm("get", "notes", release);
        const [, args = "", template = ""] = /kubectl (.*go-template)='(.*)'/.exec(notes) ?? [];
        const link = await cluster.kubectl([
          ...args.split(" ").slice(0, -1),
          `go-template=${template}`,
        ]);
        const body = JSON.stringify({ secret: link.trim().split("#").at(-1) });
        const headers = { "content-type": "application/json", "sec-fetch-site": "same-origin" };
        const sessions = `http://${cluster.nodeAddress}:${port}/v1/sessions`;
        const signIn = await fetch(sessions, { method: "POST", headers, body });
        assert.equal(signIn.status, 201);
      },
    );

    await t.test(
      "no call is refused, and the operator's Role allows nothing without a use",
      async () => {
        const script =
          "fetch('http://127.0.0.1:8081/metrics').then((answer) => answer.text()).then(console.log)";
        const metrics = await kubectl([
          "exec",
          `deployment/${release}-operator`,
          "--",
          "node",
          "-e",
          script,
        ]);
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
          assert.doesNotMatch(
            await kubectl(["logs", `deployment/${release}-${component}`]),
            /forbidden/i,
          );
        }
      },
    );

    await t.test("with a certificate it answers by https, to workers too", async () => {
      await createServiceCertificate(folder);
      const files = ["tls.crt", "tls.key", "ca.crt"].map(
        (name) => `--from-file=${join(folder, name)}`,
      );
      await kubectl(["create", "secret", "generic", "service-tls", ...files]);
      const tls = ["--set=service.tls.existingSecret=service-tls", "--reset-then-reuse-values"];
      await runHelm("upgrade", release, chartFolder, ...tls);
      await untilReady();
      await runHelm("test", release);
      const spec = { model: { source: "file:///models/orientation.onnx" }, target: "cpu" };
      await make("CompressionJob", "encrypted", { ...spec, recipe: quick });
      await untilStatus("cpj/encrypted", "Completed");
    });
  },
);

/** Files of a certificate for the Service's name, as workers of all namespaces know it. */
async function createServiceCertificate(folder: string): Promise<void> {
  const host = `${release}-service.${namespace}.svc`;
  const subject = [`/CN=${release}`, "-addext", `subjectAltName=DNS:${host}`];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const output = ["-keyout", join(folder, "tls.key"), "-out", join(folder, "tls.crt")];
  await run("openssl", ["req", "-x509", "-days", "1", ...curve, "-subj", ...subject, ...output]);
  await copyFile(join(folder, "tls.crt"), join(folder, "ca.crt"));
}

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

function imageValues(name: string): object {
  const [repository, tag] = name.split(/:(?=[^:]*$)/);
  return { repository, tag, pullPolicy: "Never" };
}
