import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { recordFinalizer } from "../../../src/contract/custom-resources/resource-labels.ts";
import { isTerminal } from "../../../src/contract/jobs/status.ts";
import { resources } from "../../../src/kubernetes/resources.ts";
import { shiftedClock } from "../../support/preloaded-modules.ts";
import { clusterMissing } from "../../support/cluster/cluster-missing.ts";
import { type ControlPlane, startControlPlane } from "../../support/cluster/control-plane.ts";
import { type Kwok, startKwok } from "../../support/cluster/kwok.ts";
import { podEndStage } from "../../support/cluster/pod-end-stage.ts";
import { until } from "../../support/until.ts";
import { type Fault, startFaultProxy } from "../fault-proxy.ts";
import { observeJobs, type ObservedJobs } from "./observe-jobs.ts";
import { spawnOperator, startOperator } from "../start-operator.ts";

const skip = clusterMissing;
const lease = "model-optimization-operator";
/** As long as an overloaded API server may take, which a leader has to survive. */
const silentMs = 5_000;
const faults: readonly Fault[] = [
  "lost",
  "unanswered",
  { status: 409, reason: "Conflict" },
  { status: 429, reason: "TooManyRequests", retryAfterSeconds: 0 },
  { status: 500, reason: "InternalError" },
  { status: 503, reason: "ServiceUnavailable" },
];

let controlPlane: ControlPlane;
let kwok: Kwok;
const used = new AsyncDisposableStack();
after(() => used.disposeAsync());

before(async () => {
  if (skip !== false) return;
  controlPlane = used.use(await startControlPlane());
  const endless = podEndStage({
    labels: { "modeloptimization.dev/step": "shard" },
    delayMs: 3_600_000,
  });
  // The test ends it, once its result is reported.
  const patient = podEndStage({
    labels: { "modeloptimization.dev/job": "reported" },
    delayMs: 3_600_000,
  });
  kwok = used.use(
    await startKwok(controlPlane, {
      endStages: [podEndStage({ delayMs: 200, maxDelayMs: 2_000 }), endless, patient],
    }),
  );
});

async function makeNamespace(name: string): Promise<string> {
  await controlPlane.kubectl(["create", "namespace", name]);
  await controlPlane.kubectl([
    "wait",
    "--for=create",
    "serviceaccount/default",
    "-n",
    name,
    "--timeout=240s",
  ]);
  return name;
}

function names(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `job-${i}`);
}

async function untilAllCompleted(cluster: ObservedJobs, all: readonly string[]): Promise<void> {
  for (const name of all) {
    const { status } = await cluster.until(name, (job) => isTerminal(job.status.status));
    assert.equal(status.status, "Completed");
    await cluster.untilTrue(() => cluster.jobs.get(`${name}-work`)?.status?.succeeded === 1);
    assert.equal(cluster.jobsSeen(`${name}-work`), 1, "a Job was created twice");
    assert.equal(cluster.jobs.get(`${name}-work`)?.status?.failed ?? 0, 0);
  }
}

/** Numbers from 0 to 1 that look random and are the same in every run. */
function* noise(seed: number): Generator<number, never> {
  for (let state = seed; ;) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state / 2 ** 32;
  }
}

suite("an operator at work", { concurrency: true, skip }, () => {
  test("jobs complete although every fourth request meets with an accident", async (t) => {
    const namespace = await makeNamespace("accidents");
    await using cluster = await observeJobs(controlPlane, namespace);
    const random = noise(7);
    let accidents = 0;
    await using proxy = await startFaultProxy(controlPlane, ({ resource, isWatch }) => {
      if (resource === "leases" || isWatch || random.next().value > 0.25) return "none";
      accidents++;
      return faults[Math.floor(random.next().value * faults.length)] ?? "none";
    });
    await using operator = await startOperator({ kubeconfig: proxy.kubeconfig, namespace });
    const all = names(24);
    await Promise.all(all.map((name) => cluster.create({ name })));
    await untilAllCompleted(cluster, all);
    t.diagnostic(
      `${accidents} accidents, ${operator.log.filter((line) => line.includes('"error"')).length} errors logged`,
    );
  });

  test("a job that the service looks after costs three writes of the operator, and events", async () => {
    const namespace = await makeNamespace("thrifty");
    await using cluster = await observeJobs(controlPlane, namespace);
    await using proxy = await startFaultProxy(controlPlane);
    await using _ = await startOperator({ kubeconfig: proxy.kubeconfig, namespace });
    await cluster.create({ name: "reported", finalizers: [recordFinalizer] });
    const pod = await until("the pod runs", () =>
      [...cluster.pods.values()].find(({ status }) => status?.phase === "Running"),
    );
    await cluster.report("reported", "Completed");
    const { name } = pod.metadata;
    const succeeded = { status: { phase: "Succeeded" } };
    await cluster.client.patch(resources.pods, name, succeeded, { subresource: "status" });
    await cluster.untilTrue(() => cluster.jobs.get("reported-work")?.status?.succeeded === 1);
    await cluster.record("reported");
    await cluster.until("reported", ({ metadata }) => metadata.finalizers === undefined);
    const writes = proxy.forwarded.filter(
      ({ method, resource, isDryRun }) =>
        method !== "GET" && !isDryRun && !["leases", "events"].includes(resource),
    );
    assert.deepEqual(
      writes.map(({ method, resource }) => `${method} ${resource}`),
      ["POST jobs", "PATCH compressionjobs/status", "PATCH compressionjobs"],
    );
    const flags = ["--field-selector", "involvedObject.kind=CompressionJob", "-o"];
    const events = ["get", "events", "-n", namespace, ...flags, "jsonpath={.items[*].reason}"];
    await until("both events are written", async () => {
      const reasons = (await controlPlane.kubectl(events)).split(" ");
      return reasons.toSorted().join(" ") === "Completed Started";
    });
  });

  test("a job that is created while the operator leads starts without another read", async () => {
    const namespace = await makeNamespace("fresh");
    await using cluster = await observeJobs(controlPlane, namespace);
    await using proxy = await startFaultProxy(controlPlane);
    await using _ = await startOperator({ kubeconfig: proxy.kubeconfig, namespace });
    const readsFor = async (name: string) => {
      const before = proxy.forwarded.length;
      await cluster.create({ name });
      await cluster.until(name, ({ status }) => status.status === "Completed");
      const since = proxy.forwarded.slice(before);
      return since.filter(
        ({ method, resource, isWatch }) => method === "GET" && resource !== "leases" && !isWatch,
      );
    };
    assert.ok((await readsFor("first")).length > 0);
    assert.deepEqual(await readsFor("second"), []);
  });

  test("an operator that is killed at any time neither loses a job nor does one twice", async () => {
    const namespace = await makeNamespace("kills");
    await using cluster = await observeJobs(controlPlane, namespace);
    const all = names(40);
    const random = noise(11);
    const created = (async () => {
      for (const name of all) {
        await cluster.create({ name });
        await delay(200);
      }
    })();
    for (let kill = 0; kill < 6; kill++) {
      await using operator = await startOperator({
        kubeconfig: controlPlane.kubeconfig,
        namespace,
      });
      await delay(random.next().value * 1_500);
      await operator.end("SIGKILL");
      // The next need not wait until the lease has run out.
      await controlPlane.kubectl(["delete", "lease", lease, "-n", namespace]);
    }
    await using _ = await startOperator({ kubeconfig: controlPlane.kubeconfig, namespace });
    await created;
    await untilAllCompleted(cluster, all);
  });

  test("of two operators one works, and the other goes on when it is killed", async (t) => {
    const namespace = await makeNamespace("two");
    await using cluster = await observeJobs(controlPlane, namespace);
    const { kubeconfig } = controlPlane;
    await using first = await startOperator({ kubeconfig, namespace });
    await using second = spawnOperator({ kubeconfig, namespace });
    await second.logged("waiting for the leadership");
    const all = names(10);
    await Promise.all(all.slice(0, 5).map((name) => cluster.create({ name })));
    await cluster.untilTrue(() => cluster.jobs.size > 0);
    const killed = performance.now();
    await first.end("SIGKILL");
    await Promise.all(all.slice(5).map((name) => cluster.create({ name })));
    await untilAllCompleted(cluster, all);
    t.diagnostic(
      `all jobs completed ${((performance.now() - killed) / 1000).toFixed(1)} s after the kill`,
    );
  });

  for (const minutes of [1, -1]) {
    const title = minutes > 0 ? "fast" : "slow";
    test(`an operator whose clock is a minute ${title} completes and cancels jobs`, async () => {
      const namespace = await makeNamespace(`clock-${title}`);
      await using cluster = await observeJobs(controlPlane, namespace);
      await using _ = await startOperator({
        kubeconfig: controlPlane.kubeconfig,
        namespace,
        environment: { NODE_OPTIONS: shiftedClock(minutes * 60_000) },
      });
      const all = names(4);
      for (const name of all) await cluster.create({ name, spec: { deadlineSeconds: 45 } });
      await cluster.create({ name: "stopped", spec: { recipe: { parallelism: 2 } } });
      await untilAllCompleted(cluster, all);
      await cluster.untilTrue(() => cluster.jobsSeen("stopped-shard") === 1);
      await cluster.change("stopped", { cancel: true });
      const { status } = await cluster.until("stopped", (job) => isTerminal(job.status.status));
      assert.equal(status.status, "Cancelled");
      assert.doesNotMatch(status.statusMessage ?? "", /did not confirm/);
    });
  }

  test("jobs that admission webhooks keep from starting say so, and complete later", async () => {
    const namespace = await makeNamespace("webhooks");
    await using cluster = await observeJobs(controlPlane, namespace);
    const denial = { status: 400, reason: 'admission webhook "a.test" denied the request' };
    const outage = { status: 500, reason: 'failed calling webhook "a.test"' };
    let fault: Fault = denial;
    await using proxy = await startFaultProxy(controlPlane, ({ method, resource }) =>
      method === "POST" && resource === "jobs" ? fault : "none",
    );
    // It has its own Jobs checked at the start, which are denied too.
    await using _ = await startOperator({ kubeconfig: proxy.kubeconfig, namespace });
    for (const [name, { reason }] of Object.entries({ denied: denial, unanswered: outage })) {
      await cluster.create({ name });
      const { status } = await cluster.until(
        name,
        (job) => job.status.status === "Pending" && job.status.statusReason === "pod_refused",
      );
      assert.equal(status.observedGeneration, 1);
      assert.ok(status.statusMessage?.includes(reason), status.statusMessage);
      fault = outage;
    }
    fault = "none";
    for (const name of ["denied", "unanswered"])
      await cluster.change(name, { ttlSecondsAfterFinished: 600 });
    await untilAllCompleted(cluster, ["denied", "unanswered"]);
  });

  test("jobs complete, and the leader stays, where each write takes two seconds", async () => {
    const namespace = await makeNamespace("slow-disk");
    await using cluster = await observeJobs(controlPlane, namespace);
    await using proxy = await startFaultProxy(controlPlane, ({ method }) =>
      method === "GET" ? "none" : "slow",
    );
    await using operator = await startOperator({ kubeconfig: proxy.kubeconfig, namespace });
    const all = names(6);
    await Promise.all(all.map((name) => cluster.create({ name })));
    await untilAllCompleted(cluster, all);
    // Without the leadership it would have ended with an error.
    assert.equal(await operator.end("SIGTERM"), 0);
  });

  test("the leader stays where the API server answers nothing for five seconds", async () => {
    const namespace = await makeNamespace("silent");
    await using cluster = await observeJobs(controlPlane, namespace);
    let isSilent = false;
    await using proxy = await startFaultProxy(controlPlane, () => (isSilent ? "silent" : "none"));
    await using operator = await startOperator({ kubeconfig: proxy.kubeconfig, namespace });
    isSilent = true;
    await delay(silentMs);
    isSilent = false;
    await cluster.create({ name: "after" });
    await untilAllCompleted(cluster, ["after"]);
    // Without the leadership it would have ended with an error.
    assert.equal(await operator.end("SIGTERM"), 0);
  });

  test("an installation whose Deployment and definitions are gone is uninstalled", async () => {
    const namespace = await makeNamespace("undefined");
    await using proxy = await startFaultProxy(controlPlane, ({ resource }) =>
      resource === "compressionjobs" ? { status: 404, reason: "NotFound" } : "none",
    );
    const { kubeconfig } = proxy;
    await using end = spawnOperator({ kubeconfig, namespace, command: ["uninstall", "operator"] });
    assert.equal(await end.ended, 0, end.log.join("\n"));
  });

  test("one job that cannot be released does not keep the others", async () => {
    const namespace = await makeNamespace("guarded");
    await using cluster = await observeJobs(controlPlane, namespace);
    const all = names(40);
    await Promise.all(all.map((name) => cluster.create({ name, finalizers: [recordFinalizer] })));
    let patches = 0;
    await using proxy = await startFaultProxy(controlPlane, ({ method, resource }) =>
      method === "PATCH" && resource === "compressionjobs" && ++patches === 1
        ? { status: 403, reason: "Forbidden" }
        : "none",
    );
    const { kubeconfig } = proxy;
    await controlPlane.kubectl(["create", "deployment", "a", "--image=a", "-n", namespace]);
    await using end = spawnOperator({ kubeconfig, namespace, command: ["uninstall", "a"] });
    assert.equal(await end.ended, 1);
    assert.match(end.log.join("\n"), /Cannot patch compressionjobs "job-\d+": Forbidden/);
    const isKept = (name: string) => cluster.history(name).at(-1)?.metadata.finalizers?.length;
    await cluster.untilTrue(() => all.filter(isKept).length === 1);
  });

  test("a job whose end the operator has not observed does not run again", async () => {
    const namespace = await makeNamespace("lagging");
    await using cluster = await observeJobs(controlPlane, namespace);
    const asked = Promise.withResolvers<void>();
    let isDeleted = false;
    await using proxy = await startFaultProxy(controlPlane, ({ method, resource, isWatch }) => {
      if (isDeleted && method === "GET" && resource === "compressionjobs" && !isWatch)
        asked.resolve();
      return "none";
    });
    await using _ = await startOperator({ kubeconfig: proxy.kubeconfig, namespace });
    await cluster.create({ name: "voices", spec: { recipe: { parallelism: 2 } } });
    await cluster.untilTrue(() =>
      [...cluster.pods.values()].some(({ status }) => status?.phase === "Running"),
    );
    const release = proxy.pauseWatches("compressionjobs");
    await cluster.report("voices", "Completed");
    await controlPlane.kubectl([
      "delete",
      "job",
      "voices-shard",
      "-n",
      namespace,
      "--cascade=foreground",
    ]);
    isDeleted = true;
    await asked.promise;
    release();
    await cluster.create({ name: "other" });
    await cluster.until("other", ({ status }) => status.status === "Completed");
    assert.equal(cluster.jobsSeen("voices-shard"), 1);
  });
});

test("jobs complete although watches break and the API server restarts", { skip }, async () => {
  const namespace = await makeNamespace("outages");
  await using cluster = await observeJobs(controlPlane, namespace);
  await using proxy = await startFaultProxy(controlPlane);
  await using _ = await startOperator({ kubeconfig: proxy.kubeconfig, namespace });
  const all = names(24);
  for (const name of all.slice(0, 12)) {
    await cluster.create({ name });
    proxy.cutWatches();
  }
  await controlPlane.restartApiServer();
  for (const name of all.slice(12)) await cluster.create({ name });
  await untilAllCompleted(cluster, all);
});

test(
  "pods of a node that fell silent are replaced, and do not hold up a cancellation",
  { skip },
  async () => {
    const namespace = await makeNamespace("silence");
    await using cluster = await observeJobs(controlPlane, namespace);
    await using _ = await startOperator({ kubeconfig: controlPlane.kubeconfig, namespace });
    for (const name of ["cancelled", "evicted"])
      await cluster.create({ name, spec: { recipe: { parallelism: 2 } } });
    const running = () =>
      [...cluster.pods.values()].filter(({ status }) => status?.phase === "Running");
    await cluster.untilTrue(() => running().length === 2);
    await kwok.stop();
    await cluster.change("cancelled", { cancel: true });
    const evicted = running().find(
      ({ metadata }) => metadata.labels?.["modeloptimization.dev/job"] === "evicted",
    );
    assert.ok(evicted !== undefined);
    await cluster.client.delete(resources.pods, evicted.metadata.name, {
      propagationPolicy: "Background",
    });
    const { status } = await cluster.until("cancelled", (job) => job.status.status === "Cancelled");
    assert.match(
      status.statusMessage ?? "",
      /node "simulated-0" did not confirm that the pod "cancelled-shard-.*" stopped/,
    );
    await cluster.untilTrue(() =>
      [...cluster.pods.values()].some(
        ({ metadata }) =>
          metadata.uid !== evicted.metadata.uid &&
          metadata.labels?.["modeloptimization.dev/job"] === "evicted",
      ),
    );
    assert.equal(cluster.jobsSeen("evicted-shard"), 1);
  },
);
