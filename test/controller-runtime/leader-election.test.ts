import assert from "node:assert/strict";
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import test, { type TestContext } from "node:test";
import {
  acquireLeadership,
  type ElectionTiming,
  fenceWrites,
  type Leadership,
  NotLeaderError,
} from "../../src/controller-runtime/leadership.ts";
import { type Clock, systemClock } from "../../src/controller-runtime/clock.ts";
import { connectCluster } from "../../src/kubernetes/connect-cluster.ts";
import type { KubernetesClient } from "../../src/kubernetes/kubernetes-client.ts";
import { resources } from "../../src/kubernetes/resources.ts";
import { clusterMissing } from "../support/cluster/cluster-missing.ts";
import { startControlPlane } from "../support/cluster/control-plane.ts";
import { createTestNamespace } from "../support/cluster/shared-cluster.ts";

const skip = clusterMissing;
const name = "operator";
/** Outlasts whatever else the machine does. */
const patient: ElectionTiming = { leaseMs: 60_000, renewDeadlineMs: 55_000, retryMs: 200 };
/** For tests that wait until a Lease has run out. */
const hasty: ElectionTiming = { leaseMs: 5_000, renewDeadlineMs: 4_000, retryMs: 200 };

interface Place {
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly client: KubernetesClient;
}

async function makePlace(t: TestContext): Promise<Place> {
  const { cluster, namespace } = await createTestNamespace();
  return openPlace(t, cluster.kubeconfig, namespace);
}

async function openPlace(t: TestContext, kubeconfig: string, namespace: string): Promise<Place> {
  const client = await connectCluster({ kubeconfig }, { namespace });
  t.after(() => client.close());
  return { kubeconfig, namespace, client };
}

interface Candidacy {
  readonly timing?: ElectionTiming;
  readonly clock?: Clock;
}

/** Campaigns until the test ends. */
function run(
  t: TestContext,
  { client }: Place,
  identity: string,
  options: Candidacy = {},
): Promise<Leadership> {
  const stop = new AbortController();
  t.after(() => stop.abort());
  const election = {
    client,
    name,
    identity,
    clock: systemClock,
    timing: patient,
    log: () => {},
    ...options,
  };
  const leadership = acquireLeadership(election, stop.signal);
  leadership.then(
    (won) => t.after(() => won.release()),
    () => {},
  );
  return leadership;
}

/** Waits until the Lease was written so many times since then, or from now on, and gives its holder. */
async function seeRenewals(
  place: Place,
  count: number,
  since?: string,
): Promise<string | undefined> {
  const watch = place.client.watch(resources.leases, {
    fieldSelector: `metadata.name=${name}`,
    resourceVersion: since ?? (await readResourceVersion(place)),
    timeoutSeconds: 60,
    signal: new AbortController().signal,
  });
  let seen = 0;
  for await (const { type, object } of watch) {
    if (type === "BOOKMARK" || type === "DELETED" || ++seen < count) continue;
    return object.spec?.holderIdentity;
  }
  throw new Error(`The Lease was renewed ${seen} times only`);
}

async function readResourceVersion({ client }: Place): Promise<string> {
  return (await client.get(resources.leases, name)).metadata.resourceVersion;
}

function isPending(promise: Promise<unknown>): Promise<boolean> {
  const nothing = Symbol("nothing");
  return Promise.race([promise, Promise.resolve(nothing)]).then((first) => first === nothing);
}

async function lostReason({ lost }: Leadership): Promise<unknown> {
  if (!lost.aborted) await once(lost, "abort");
  return lost.reason;
}

function startCandidate(t: TestContext, { kubeconfig, namespace }: Place, identity: string) {
  const settings = JSON.stringify({ kubeconfig, namespace, name, identity, timing: hasty });
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, "candidate-process.ts"), settings],
    {
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  t.after(() => child.kill("SIGKILL"));
  return { child, lines: streamLines(child) };
}

async function* streamLines(
  child: ChildProcessByStdio<Writable, Readable, null>,
): AsyncGenerator<string, undefined> {
  for await (const line of createInterface({ input: child.stdout })) yield line;
  return undefined;
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1_000).toFixed(2)} s`;
}

test(
  "of many candidates one leads, and when it releases the Lease the next one does",
  { skip },
  async (t) => {
    const place = await makePlace(t);
    const campaigns = ["a", "b", "c", "d", "e"].map((identity) => run(t, place, identity));
    const first = await Promise.race(campaigns);
    assert.ok(first.isLeader());
    await seeRenewals(place, 3);
    const leading = await Promise.all(campaigns.map(async (each) => !(await isPending(each))));
    assert.equal(leading.filter(Boolean).length, 1);

    const others = campaigns.filter((_, i) => !leading[i]);
    const releasedAt = performance.now();
    await first.release();
    const second = await Promise.race(others);
    t.diagnostic(`next leader after a release: ${seconds(releasedAt)}`);
    assert.ok(!first.isLeader());
    assert.ok(second.isLeader());
    assert.throws(() => first.assertLeader(), NotLeaderError);
    second.assertLeader();
    assert.ok(!first.lost.aborted, "a release is not a loss");
  },
);

test("a Lease that is released while it is renewed is not lost later", { skip }, async (t) => {
  const place = await makePlace(t);
  const renewing = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  const client: KubernetesClient = {
    ...withoutFence(place.client),
    async replace(type, object, options) {
      renewing.resolve();
      await answered.promise;
      return place.client.replace(type, object, options);
    },
  };
  const { clock, timers } = trackTimers();
  const leader = await run(t, { ...place, client }, "a", { clock });
  await renewing.promise;
  const released = leader.release();
  answered.resolve();
  await released;
  assert.equal(timers.size, 0);
});

/** The same client as a plain object. */
function withoutFence(client: KubernetesClient): KubernetesClient {
  const { signal: lost } = new AbortController();
  const release = async () => {};
  return fenceWrites(client, { lost, isLeader: () => true, assertLeader: () => {}, release });
}

/** The clock of the system, and its timers that have neither fired nor been cancelled. */
function trackTimers() {
  const timers = new Set<symbol>();
  const clock: Clock = {
    ...systemClock,
    schedule(ms, callback) {
      const timer = Symbol(ms);
      timers.add(timer);
      const cancel = systemClock.schedule(ms, () => {
        timers.delete(timer);
        callback();
      });
      return () => {
        timers.delete(timer);
        cancel();
      };
    },
  };
  return { clock, timers };
}

test("when the leader is killed another takes over", { skip }, async (t) => {
  const place = await makePlace(t);
  const { child, lines } = startCandidate(t, place, "killed");
  assert.equal((await lines.next()).value, "leading");
  const next = run(t, place, "next", { timing: hasty });
  await seeRenewals(place, 3);
  const killedAt = performance.now();
  child.kill("SIGKILL");
  assert.ok((await next).isLeader());
  t.diagnostic(
    `next leader after a kill, lease of ${hasty.leaseMs / 1_000} s: ${seconds(killedAt)}`,
  );
});

test(
  "a leader that stood still knows that it leads no more before it does anything else",
  { skip },
  async (t) => {
    const place = await makePlace(t);
    const { child, lines } = startCandidate(t, place, "stalled");
    assert.equal((await lines.next()).value, "leading");
    const next = run(t, place, "next", { timing: hasty });
    await seeRenewals(place, 2);
    child.stdin.write(`${hasty.leaseMs * 2}\n`);
    assert.ok((await next).isLeader());
    assert.equal((await lines.next()).value, "not leader");
    assert.equal((await lines.next()).value, "lost");
    assert.equal(await seeRenewals(place, 2), "next");
  },
);

test(
  "a candidate whose clock is hours off leaves a leader alone that renews",
  { skip },
  async (t) => {
    const place = await makePlace(t);
    const hour = 3_600_000;
    const ahead = { ...systemClock, date: () => new Date(Date.now() + 5 * hour) };
    const behind = { ...systemClock, date: () => new Date(Date.now() - 5 * hour) };
    const leader = await run(t, place, "behind", { clock: behind });
    const other = run(t, place, "ahead", { clock: ahead });
    assert.equal(await seeRenewals(place, 15), "behind");
    assert.ok(leader.isLeader());
    assert.ok(await isPending(other));
    await leader.release();
    assert.ok((await other).isLeader());
  },
);

test(
  "a machine that slept does not lead on, though its steady clock stood still",
  { skip },
  async (t) => {
    const place = await makePlace(t);
    let sleptMs = 0;
    const leader = await run(t, place, "sleeper", {
      clock: { ...systemClock, date: () => new Date(Date.now() + sleptMs) },
    });
    assert.ok(leader.isLeader());
    sleptMs = 60_000;
    assert.ok(!leader.isLeader());
    assert.match(String(await lostReason(leader)), /not renewed in time/);
  },
);

test(
  "a Lease that is deleted or written to by others stays with its leader",
  { skip },
  async (t) => {
    const place = await makePlace(t);
    const leader = await run(t, place, "leader");
    const other = run(t, place, "other");
    await seeRenewals(place, 1);
    await place.client.patch(resources.leases, name, {
      metadata: { annotations: { note: "looked at" } },
    });
    assert.equal(await seeRenewals(place, 2), "leader");
    const before = await readResourceVersion(place);
    await place.client.delete(resources.leases, name, { propagationPolicy: "Background" });
    assert.equal(await seeRenewals(place, 5, before), "leader");
    assert.ok(leader.isLeader());
    assert.ok(await isPending(other));
  },
);

test("a leader whose Lease was given to another stops", { skip }, async (t) => {
  const place = await makePlace(t);
  const leader = await run(t, place, "leader");
  await place.client.patch(resources.leases, name, { spec: { holderIdentity: "usurper" } });
  assert.match(String(await lostReason(leader)), /held by "usurper"/);
  assert.throws(() => leader.assertLeader(), NotLeaderError);
});

test("a campaign ends when it is stopped", { skip }, async (t) => {
  const place = await makePlace(t);
  await run(t, place, "leader");
  const stop = new AbortController();
  const election = {
    client: place.client,
    name,
    identity: "other",
    clock: systemClock,
    timing: patient,
    log: () => {},
  };
  const other = acquireLeadership(election, stop.signal);
  await seeRenewals(place, 1);
  stop.abort(new Error("stopped"));
  await assert.rejects(other, /stopped/);
});

test(
  "a leader survives a short absence of the API server, and gives up in a long one",
  { skip },
  async (t) => {
    await using controlPlane = await startControlPlane();
    const place = await openPlace(t, controlPlane.kubeconfig, "default");
    const survivor = await run(t, place, "survivor");
    await controlPlane.restartApiServer();
    assert.equal(await seeRenewals(place, 2), "survivor");
    await survivor.release();

    const logged: string[] = [];
    const leader = await run(t, place, "leader", { timing: hasty });
    const other = acquireLeadership(
      {
        client: place.client,
        name,
        identity: "other",
        clock: systemClock,
        timing: hasty,
        log: (_, line) => logged.push(line),
      },
      t.signal,
    );
    await controlPlane.stopApiServer();
    assert.match(String(await lostReason(leader)), /not renewed in time/);
    assert.ok(!leader.isLeader());
    await controlPlane.startApiServer();
    const next = await other;
    assert.ok(next.isLeader());
    await next.release();
    assert.ok(logged.includes("Cannot acquire the lease"));
  },
);
