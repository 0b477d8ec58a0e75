import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { parse } from "yaml";
import { z } from "zod";
import { apiVersion } from "../../src/contract/custom-resources/api-group.ts";
import { resourceLabels } from "../../src/contract/custom-resources/resource-labels.ts";
import { resources } from "../../src/kubernetes/resources.ts";
import { ProcessNode } from "../executors/cluster/process-node.ts";
import { clusterMissing, prometheusMissing } from "../support/cluster/cluster-missing.ts";
import { type ControlPlane, startControlPlane } from "../support/cluster/control-plane.ts";
import { realModel } from "../support/real-models.ts";
import { chartFolder } from "./helm.ts";
import {
  type MonitoredInstallation,
  namespace,
  startMonitoredInstallation,
} from "./monitored-installation.ts";
import { until } from "../support/until.ts";

const skip = clusterMissing || prometheusMissing;
const dashboard = z.object({
  panels: z.array(
    z.object({ title: z.string(), targets: z.array(z.object({ expr: z.string() })) }),
  ),
});
const ruleFile = z.object({
  groups: z.array(z.object({ rules: z.array(z.object({ alert: z.string() })) })),
});

interface Monitored extends MonitoredInstallation {
  readonly controlPlane: ControlPlane;
  /** Starts a job that is not suspended. */
  readonly startJob: () => Promise<string>;
  /** Creates a CompressionJob that nothing is done for. */
  readonly createSuspended: (name: string) => Promise<string>;
}

/** Makes the cause of an alert. Returns what its runbook section says to do. */
type Fault = (monitored: Monitored) => Promise<() => unknown>;

/** By the alerts that each makes fire, in this order. */
const faults: readonly (readonly [alerts: readonly string[], fault: Fault])[] = [
  [["RequestsFail", "DiskNearlyFull", "JobsFail"], fillDisk],
  [["ReconciliationsFail"], forbidStatus],
  [["ReconciliationStuck"], silenceStatus],
  [["ReadsForbidden"], forbidReads],
  [["ApiServerUnreachable"], cutService],
  [["EventLoopBlocked"], slowService],
];

test("every alert fires on its fault and ends with it", { skip }, async (t) => {
  await using used = new AsyncDisposableStack();
  const owner = { after: (work: () => unknown) => used.defer(async () => void (await work())) };
  const controlPlane = used.use(await startControlPlane());
  const installation = await startMonitoredInstallation(owner, controlPlane);
  if (installation === undefined) return t.skip("Needs the right to mount a small file system");
  const monitored = await prepare(installation, controlPlane);
  const { service, prometheus, createSuspended } = monitored;
  const seen: string[] = [];
  const firing = (alert: string) => {
    seen.push(alert);
    return t.test(`${alert} fires`, () => prometheus.firing(alert));
  };
  for (const name of ["unfinished", ...jobsWithoutSpace]) await createSuspended(name);
  const completed = await monitored.startJob();
  const killed = await monitored.startJob();
  await firing("JobsWaitLong");

  const node = used.use(await ProcessNode.start(controlPlane, namespace));
  node.isOutOfReach = true;
  await killWorker(monitored, node, killed);
  await firing("LogsUnread");
  await deleteFailedPod(monitored);
  await firing("LogsLost");
  node.isOutOfReach = false;
  for await (const line of service.client.followLogs(completed)) assert.ok(line.text);
  await testPanels(t, monitored);
  await t.test("docs/metrics.md has every metric", () => testPage(monitored));
  for (const [alerts, fault] of faults) {
    const end = await fault(monitored);
    for (const alert of alerts) await firing(alert);
    await end();
  }

  await service.stop("SIGKILL");
  await monitored.operator.end("SIGKILL");
  for (const alert of ["ServiceUnreachable", "OperatorWithoutLeader"]) await firing(alert);
  await Promise.all([service.again(), monitored.startOperator()]);

  const rules = await readFile(join(chartFolder, "monitoring/rules.yaml"), "utf8");
  const all = ruleFile.parse(parse(rules)).groups.flatMap((group) => group.rules);
  assert.deepEqual(seen.toSorted(), all.map(({ alert }) => alert).toSorted());
  for (const alert of seen) await t.test(`${alert} ends`, () => prometheus.ended(alert));
});

async function prepare(
  installation: MonitoredInstallation,
  controlPlane: ControlPlane,
): Promise<Monitored> {
  const { client } = installation.service;
  const { source } = await client.uploadModel(realModel("ocr-orientation"));
  const body = { model: { source }, target: "cpu" };
  const recipe = { evaluation: { level: "none" } } as const;
  return {
    ...installation,
    controlPlane,
    startJob: async () => (await client.call("startCompression", { body: { ...body, recipe } })).id,
    createSuspended: (name) => {
      const spec = { ...body, recipe, suspend: true };
      const job = { apiVersion, kind: "CompressionJob", metadata: { name }, spec };
      return controlPlane.kubectl(["create", "-n", namespace, "-f", "-"], JSON.stringify(job));
    },
  };
}

async function testPanels(t: TestContext, { prometheus }: Monitored): Promise<void> {
  const text = await readFile(join(chartFolder, "monitoring/dashboard.json"), "utf8");
  for (const { title, targets } of dashboard.parse(JSON.parse(text)).panels) {
    for (const { expr } of targets) {
      await t.test(`the panel "${title}" has data: ${expr}`, () => prometheus.find(expr));
    }
  }
}

/** Compares names and meanings with what the processes answer, but for those of Node. */
async function testPage({ metricsUrls }: Monitored): Promise<void> {
  const page = await readFile(join(import.meta.dirname, "../../docs/metrics.md"), "utf8");
  const rows = page.matchAll(/^\| `(\w+)` \| .* \| ([^|]+) \|$/gm);
  const documented = Array.from(rows, ([, name, meaning]) => `${name}: ${meaning}`);
  const texts = await Promise.all(metricsUrls.map(async (url) => (await fetch(url)).text()));
  const helps = texts.flatMap((text) => [...text.matchAll(/^# HELP (\w+) (.*)$/gm)]);
  const answered = helps
    .filter(([, name = ""]) => !/^(nodejs|process)_/.test(name))
    .map(([, name, meaning]) => `${name}: ${meaning}`);
  assert.deepEqual(documented.toSorted(), [...new Set(answered)].toSorted());
}

async function killWorker({ service }: Monitored, node: ProcessNode, id: string): Promise<void> {
  const labelSelector = `${resourceLabels.jobId}=${id}`;
  await until("the job's worker runs", async () => {
    const [page] = await Array.fromAsync(service.api.list(resources.pods, { labelSelector }));
    const pod = page?.items.find(({ metadata }) => node.isRunning(metadata.name));
    if (pod !== undefined) node.kill(pod.metadata.name);
    return pod !== undefined;
  });
}

/** By force, as nodes are cleaned up by hand. */
async function deleteFailedPod({ controlPlane }: Monitored): Promise<void> {
  const inNamespace = ["-n", namespace];
  const failed = ["--field-selector=status.phase=Failed", "-o", "name"];
  const names = await controlPlane.kubectl(["get", "pods", ...inNamespace, ...failed]);
  const [name = ""] = names.split("\n");
  await controlPlane.kubectl(["delete", name, ...inNamespace, "--force", "--wait=false"]);
}

/** Their workers end while the disk is full. */
const jobsWithoutSpace = ["first", "second", "third"];

async function fillDisk({ disk, startJob, controlPlane }: Monitored) {
  await disk.fill();
  for (const name of jobsWithoutSpace) {
    const patch = JSON.stringify({ spec: { suspend: false } });
    const flags = ["-n", namespace, "--type=merge", `--patch=${patch}`];
    await controlPlane.kubectl(["patch", "cpj", name, ...flags]);
  }
  return repeat(
    async () => {
      await assert.rejects(startJob(), /storage_full/);
      await delay(50);
    },
    () => disk.enlarge(),
  );
}

async function forbidStatus({ access, createSuspended }: Monitored) {
  access.operator.judge = ({ method, resource }) =>
    method === "PATCH" && resource === "compressionjobs/status"
      ? { status: 403, reason: "Forbidden" }
      : "none";
  await createSuspended("forbidden");
  return () => (access.operator.judge = () => "none");
}

async function silenceStatus({ access, createSuspended }: Monitored) {
  access.operator.judge = ({ method, resource }) =>
    method === "PATCH" && resource === "compressionjobs/status" ? "silent" : "none";
  await createSuspended("unanswered");
  return () => (access.operator.judge = () => "none");
}

async function forbidReads({ access: { operator } }: Monitored) {
  operator.judge = ({ method, resource }) =>
    method === "GET" && resource === "pods" ? { status: 403, reason: "Forbidden" } : "none";
  operator.proxy.cutWatches();
  return () => (operator.judge = () => "none");
}

async function cutService({ access: { service } }: Monitored) {
  service.judge = () => "lost";
  service.proxy.cutWatches();
  return () => (service.judge = () => "none");
}

/** A process that does not get the processor time that it needs. */
async function slowService({ service }: Monitored) {
  return repeat(async () => {
    service.process.kill("SIGSTOP");
    await delay(700);
    service.process.kill("SIGCONT");
    await delay(300);
  });
}

/** Repeats the work until the returned function is called, which calls `end`. */
function repeat(work: () => Promise<void>, end = async () => {}) {
  const over = new AbortController();
  const running = (async () => {
    while (!over.signal.aborted) await work();
  })();
  running.catch(() => "the end reports it");
  return async () => {
    over.abort();
    await running;
    await end();
  };
}
