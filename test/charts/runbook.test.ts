import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import test, { type TestContext } from "node:test";
import { promisify } from "node:util";
import { apiVersion } from "../../src/contract/custom-resources/api-group.ts";
import { startOperator } from "../operator/start-operator.ts";
import { clusterMissing, helmMissing } from "../support/cluster/cluster-missing.ts";
import { type ControlPlane, startControlPlane } from "../support/cluster/control-plane.ts";
import { startKwok } from "../support/cluster/kwok.ts";
import { programPath } from "../support/cluster/programs.ts";
import { chartFolder, helm, valueFlags } from "./helm.ts";

const exec = promisify(execFile);
const namespace = "models";
const service = "mos-model-optimization-service";
const page = await readFile(join(import.meta.dirname, "../../docs/alerts.md"), "utf8");
const commands = Array.from(page.matchAll(/^```sh\n([^]*?)^```$/gm), ([, lines = ""]) =>
  lines.trimEnd().split(/(?<!\\)\n/),
).flat();

/** Lines that the commands look for, long before the last. */
const logLines = [
  '{"level":"error","message":"A request failed"}',
  '{"level":"error","message":"Cannot watch pods. Grant the service account a Role"}',
  ...Array.from({ length: 1_000 }, () => '{"level":"info","message":"A request was answered"}'),
];

/** What some commands print; others show that something is there. */
const expected: readonly (readonly [command: RegExp, output: RegExp])[] = [
  [/A request failed/, /^(.*A request failed.*\n){2}$/],
  [/"level":"error"/, /^(.*"level":"error".*\n){6}$/],
  [/Grant the service account/, /^(.*Grant the service account.*\n){3}$/],
  [/get lease/, /mos-operator-0/],
  [/get cpj/, /waits +suspended +The job is suspended/],
  [/readyz/, /readyz check passed/],
];

/** The API server calls no node on loopback, and says so of nodes that it knows. */
const refused = /address not allowed/;

test(
  "the runbook's commands run as they are written",
  {
    skip: clusterMissing || helmMissing,
  },
  async (t) => {
    await using plane = await startControlPlane();
    await using _kwok = await startKwok(plane, { logLines });
    await using _operator = await install(plane);
    const kubectl = await programPath("kubectl");
    const path = `${dirname(kubectl)}:${process.env["PATH"]}`;
    const env = { PATH: path, KUBECONFIG: plane.kubeconfig, HOME: plane.folder };
    for (const command of commands) {
      await t.test(command, async () => {
        const words = command.replaceAll("NS", namespace).replaceAll("NODE", "simulated-0");
        const running = exec("sh", ["-c", words], { env });
        if (command.includes("NODE")) return assert.rejects(running, refused);
        const { stdout } = await running;
        const [, output] = expected.find(([named]) => named.test(command)) ?? [];
        assert.match(stdout, output ?? /\S/);
      });
    }
    await testClaim(t, plane);
  },
);

/** The release with two pods of the service, its operator, and a job that waits. */
async function install(plane: ControlPlane): Promise<AsyncDisposable> {
  const { kubectl, kubeconfig } = plane;
  const create = (object: object) =>
    kubectl(["create", "-n", namespace, "-f", "-"], JSON.stringify(object));
  await kubectl(["create", "namespace", namespace]);
  for (const object of [storageClass, volume]) await create(object);
  const values = {
    crds: { enabled: false },
    service: { persistence: { storageClass: storageClass.metadata.name } },
  };
  const flags = [`--namespace=${namespace}`, ...valueFlags(values)];
  await helm(["install", "mos", chartFolder, ...flags], kubeconfig);
  await kubectl(["scale", "-n", namespace, `deployment/${service}`, "--replicas=2"]);
  const available = ["deployment", "--all", "--for=condition=Available", "--timeout=120s"];
  await kubectl(["wait", "-n", namespace, ...available]);
  const environment = { MOS_POD_NAME: "mos-operator-0" };
  const operator = await startOperator({ kubeconfig, namespace, environment });
  await create(job);
  const reason = "--for=jsonpath={.status.statusReason}=suspended";
  await kubectl(["wait", "-n", namespace, "cpj/waits", reason, "--timeout=120s"]);
  return operator;
}

async function testClaim(t: TestContext, { kubectl }: ControlPlane): Promise<void> {
  await t.test("the claim is larger then", async () => {
    const size = "jsonpath={.spec.resources.requests.storage}";
    assert.equal(await kubectl(["get", "pvc", service, "-n", namespace, "-o", size]), "200Gi");
  });
}

const storageClass = {
  apiVersion: "storage.k8s.io/v1",
  kind: "StorageClass",
  metadata: { name: "elastic" },
  provisioner: "storage.example/none",
  allowVolumeExpansion: true,
};

const volume = {
  apiVersion: "v1",
  kind: "PersistentVolume",
  metadata: { name: "service" },
  spec: {
    accessModes: ["ReadWriteOnce"],
    capacity: { storage: "50Gi" },
    storageClassName: storageClass.metadata.name,
    claimRef: { name: service, namespace },
    hostPath: { path: "/nonexistent" },
  },
};

const job = {
  apiVersion,
  kind: "CompressionJob",
  metadata: { name: "waits" },
  spec: {
    model: { source: "https://models.example/model.onnx" },
    target: "cpu",
    suspend: true,
  },
};
