import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { workerJobManifest } from "../../../operator/controllers/compression-job/decide/worker-job-manifest.ts";
import type { CompressionJob } from "../../../src/contract/custom-resources/compression-job.ts";
import { builtinTargets } from "../../../src/contract/jobs/target.ts";
import { systemClock } from "../../../src/controller-runtime/clock.ts";
import {
  resourceLabels,
  syncRequestAnnotation,
} from "../../../src/contract/custom-resources/resource-labels.ts";
import type { JobStatus } from "../../../src/contract/jobs/status.ts";
import { type KubernetesJob, resources } from "../../../src/kubernetes/resources.ts";
import { resolveJobId } from "../../../src/resources/job-identity.ts";
import { clusterMissing } from "../../support/cluster/cluster-missing.ts";
import { type ControlPlane, startControlPlane } from "../../support/cluster/control-plane.ts";
import { startKwok } from "../../support/cluster/kwok.ts";
import { podEndStage } from "../../support/cluster/pod-end-stage.ts";
import { type ProxiedRequest, startFaultProxy } from "../fault-proxy.ts";
import { observeJobs, type ObservedJobs } from "./observe-jobs.ts";
import { jobSettings } from "./make-job.ts";
import { runController } from "./run-controller.ts";

const ownResources: readonly string[] = [
  "compressionjobs",
  "compressionjobs/status",
  "jobs",
  "pods",
];
const skip = clusterMissing;

let controlPlane: ControlPlane;
const used = new AsyncDisposableStack();
after(() => used.disposeAsync());

before(async () => {
  if (skip !== false) return;
  controlPlane = used.use(await startControlPlane());
  const endless = podEndStage({ labels: { [resourceLabels.step]: "shard" }, delayMs: 3_600_000 });
  used.use(await startKwok(controlPlane, { endStages: [podEndStage({ delayMs: 300 }), endless] }));
});

function isWrite({ method, resource }: ProxiedRequest): boolean {
  return method !== "GET" && ownResources.includes(resource);
}

type Scenario = (cluster: ObservedJobs, name: string) => Promise<JobStatus>;

/**
 * Runs a scenario with an operator that crashes at one of its writes, and another that continues;
 * false where it has fewer writes.
 */
async function survives(
  scenario: Scenario,
  namespace: string,
  crash: { write: number; fault: "lost" | "unanswered" },
): Promise<boolean> {
  await using cluster = await observeJobs(controlPlane, namespace);
  const crashed = Promise.withResolvers<void>();
  let writes = 0;
  await using proxy = await startFaultProxy(controlPlane, (request) => {
    if (writes >= crash.write) return "lost";
    if (!isWrite(request) || ++writes < crash.write) return "none";
    crashed.resolve();
    return crash.fault;
  });
  await using first = await runController(proxy.kubeconfig, namespace);
  const successor = crashed.promise.then(async () => {
    await first.crash();
    return runController(controlPlane.kubeconfig, namespace);
  });
  const name = `${crash.fault}-${crash.write}`;
  const expected = await scenario(cluster, name);
  const statuses = cluster.history(name).map(({ status }) => status.status);
  assert.equal(statuses.at(-1), expected);
  assert.ok(statuses.slice(statuses.indexOf(expected)).every((status) => status === expected));
  assert.equal(
    cluster.jobsSeen(`${name}-work`) + cluster.jobsSeen(`${name}-shard`),
    1,
    "a Job was created twice",
  );
  const hasCrashed = writes >= crash.write;
  if (hasCrashed) await (await successor).crash();
  return hasCrashed;
}

const scenarios: Readonly<Record<string, Scenario>> = {
  async completes(cluster, name) {
    await cluster.create({ name });
    await cluster.until(name, ({ status }) => status.status === "Completed");
    await cluster.record(name);
    await cluster.until(
      name,
      ({ metadata, status }) => status.status === "Completed" && metadata.finalizers === undefined,
    );
    return "Completed";
  },
  async "is cancelled"(cluster, name) {
    await cluster.create({ name, spec: { recipe: { parallelism: 2 } } });
    await cluster.untilTrue(() =>
      [...cluster.pods.values()].some(({ status }) => status?.phase === "Running"),
    );
    await cluster.change(name, { cancel: true });
    await cluster.until(name, ({ status }) => status.status === "Cancelled");
    await cluster.record(name);
    await cluster.until(
      name,
      ({ metadata, status }) => status.status === "Cancelled" && metadata.finalizers === undefined,
    );
    const [left] = await Array.fromAsync(cluster.client.list(resources.pods));
    assert.deepEqual(left?.items, []);
    return "Cancelled";
  },
};

async function createNamespace(namespace: string): Promise<void> {
  await controlPlane.kubectl(["create", "namespace", namespace]);
  const account = ["--for=create", "serviceaccount/default", "-n", namespace, "--timeout=240s"];
  await controlPlane.kubectl(["wait", ...account]);
}

suite("an operator that crashes", { concurrency: true, skip }, () => {
  for (const [happens, scenario] of Object.entries(scenarios)) {
    for (const [fault, when] of [
      ["lost", "before"],
      ["unanswered", "after"],
    ] as const) {
      test(`${when} any of its writes leaves a job that ${happens} all the same`, async (t) => {
        const namespace = `${happens.replaceAll(" ", "-")}-${when}`;
        await createNamespace(namespace);
        let write = 1;
        while (await survives(scenario, namespace, { write, fault })) write++;
        t.diagnostic(`${write - 1} writes`);
        assert.ok(write > 4);
      });
    }
  }
});

test(
  "a worker Job for which nothing happens is changed a minute later, so that it is synced",
  { skip },
  async () => {
    const namespace = "forgotten";
    await createNamespace(namespace);
    await using cluster = await observeJobs(controlPlane, namespace);
    const job = await cluster.create({ name: "voices" });
    await cluster.client.create(resources.jobs, unsyncedWorkerJob(job));
    const nextMinute = { ...systemClock, date: () => new Date(Date.now() + 60_000) };
    await using _ = await runController(controlPlane.kubeconfig, namespace, nextMinute);
    await cluster.untilTrue(() => {
      const { annotations } = cluster.jobs.get("voices-work")?.metadata ?? {};
      return Date.parse(annotations?.[syncRequestAnnotation] ?? "") > Date.now();
    });
    const pods = [...cluster.pods.values()];
    assert.deepEqual(pods, []);
  },
);

test("a job whose pod runs and reports nothing says so", { skip }, async () => {
  const namespace = "silent";
  await createNamespace(namespace);
  await using cluster = await observeJobs(controlPlane, namespace);
  const begin = Date.now();
  const hurried = {
    now: () => systemClock.now() * 50,
    date: () => new Date(begin + (Date.now() - begin) * 50),
    schedule: (ms: number, callback: () => void) => systemClock.schedule(ms / 50, callback),
  };
  await using _ = await runController(controlPlane.kubeconfig, namespace, hurried);
  await cluster.create({ name: "voices", spec: { recipe: { parallelism: 2 } } });
  const { status } = await cluster.until(
    "voices",
    (job) => job.status.statusReason === "worker_silent",
  );
  assert.deepEqual([status.status, status.observedGeneration], ["Pending", 1]);
  await cluster.report("voices", "Sharding");
  await cluster.until("voices", (job) => job.status.status === "Sharding");
});

/** As the operator creates it, but left alone by Kubernetes' Job controller. */
function unsyncedWorkerJob(job: CompressionJob): KubernetesJob {
  const target = builtinTargets.find(({ name }) => name === job.spec.target);
  assert.ok(target);
  const jobId = resolveJobId(job);
  const plan = { resource: job, jobId, target, parallelism: 1, deadlineSeconds: 600 };
  const { spec, ...manifest } = workerJobManifest(
    { ...plan, step: "work" },
    { ...jobSettings, serviceAccount: "default" },
  );
  assert.ok(spec);
  return { ...manifest, spec: { ...spec, managedBy: "test.modeloptimization.dev/nobody" } };
}
