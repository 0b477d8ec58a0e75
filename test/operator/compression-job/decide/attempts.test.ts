import assert from "node:assert/strict";
import test from "node:test";
import { decide } from "../../../../operator/controllers/compression-job/decide/decide.ts";
import {
  toWorkerPod,
  type WorkerPod,
} from "../../../../operator/controllers/compression-job/observe/worker-pod.ts";
import { maxAttempts } from "../../../../src/contract/limits.ts";
import { recordFinalizer } from "../../../../src/contract/custom-resources/resource-labels.ts";
import { hasHiddenCharacters } from "../../../../src/contract/text/hidden-characters.ts";
import { workerExit } from "../../../../src/contract/worker-protocol/exit-codes.ts";
import { jobSettings, makeChild, makeJob, makeObservedState, makePod, start } from "../make-job.ts";

const second = 1000;
const resource = makeJob({
  metadata: { finalizers: [recordFinalizer] },
  spec: { deadlineSeconds: 60 },
});
const child = makeChild(resource);

function killed(number: number, fields: Partial<WorkerPod> = {}, reason = "Error"): WorkerPod {
  const at = start + 10 * second;
  const termination = { exitCode: workerExit.killed, reason, message: "", at };
  const name = `pod-${number}`;
  return makePod(child, { name, uid: name, phase: "Failed", termination, ...fields });
}

function decideOn(pods: readonly WorkerPod[], workerJob = child) {
  const now = start + 30 * second;
  const decision = decide(makeObservedState({ resource, workerJobs: [workerJob], pods, now }));
  const write = decision.actions.find((action) => action.type === "writeStatus");
  return { ...decision, error: write?.patch.error };
}

test("decide() fails a job whose worker is killed at every attempt, and not before", () => {
  const pods = Array.from({ length: maxAttempts }, (_, number) => killed(number));
  assert.equal(decideOn(pods.slice(1)).error, undefined);
  assert.deepEqual(decideOn(pods).error, {
    code: "worker_killed",
    message: "The worker was killed from outside",
  });
});

test("decide() reports once each pod that was lost, and the attempt that follows", () => {
  const at = start + 10 * second;
  const disrupted = { disruption: "EvictionByEvictionAPI", disruptedAt: at };
  const evicted = makePod(child, { name: "pod-0", deletionDeadline: at + second, ...disrupted });
  const eviction = decideOn([evicted]);
  const message =
    'The pod "pod-0" was evicted, as when its node is drained (EvictionByEvictionAPI)';
  const reason = "EvictionByEvictionAPI";
  const lost = { pod: "pod-0", at: new Date(at).toISOString(), reason, message };
  assert.deepEqual(eviction.actions, [
    { type: "writeStatus", patch: { attempts: { count: 1, lost: 1, ...lost } } },
    { type: "recordEvent", warning: true, reason: "PodLost", message },
  ]);

  const told = {
    ...resource,
    status: { ...resource.status, attempts: { count: 1, lost: 1, ...lost } },
  };
  const decideLater = (pods: readonly WorkerPod[], from: typeof told) =>
    decide(makeObservedState({ resource: from, workerJobs: [child], pods, now: at })).actions;
  assert.deepEqual(decideLater([evicted], told), []);
  const next = makePod(child, { name: "pod-1", uid: "pod-1", createdAt: at + second });
  assert.deepEqual(decideLater([evicted, { ...next, phase: "Pending" }], told), []);
  const attempts = { count: 2, lost: 1, ...lost };
  assert.deepEqual(decideLater([evicted, next], told), [
    { type: "writeStatus", patch: { attempts } },
    {
      type: "recordEvent",
      warning: false,
      reason: "AttemptStarted",
      message: 'Attempt 2 works in the pod "pod-1"',
    },
  ]);
  const again = { ...told, status: { ...told.status, attempts } };
  assert.deepEqual(decideLater([evicted, next], again), []);
  const crash = killed(1, {
    termination: { exitCode: 70, reason: "", message: "", at: at + 9000 },
  });
  const [write] = decideLater([evicted, crash], again);
  assert.ok(write?.type === "writeStatus");
  assert.deepEqual(
    [write.patch.attempts?.count, write.patch.attempts?.lost, write.patch.attempts?.reason],
    [2, 2, "worker_crashed"],
  );
});

test("decide() counts the attempts at each share by themselves", () => {
  const pods = Array.from({ length: maxAttempts }, (_, index) => killed(index, { index }));
  assert.equal(decideOn(pods).error, undefined);
});

test("decide() does not try again what has no memory", () => {
  assert.equal(decideOn([killed(0, {}, "OOMKilled")]).error?.code, "out_of_memory");
});

test("decide() says why the cluster ended the pods of a job too often", () => {
  const evicted = Array.from({ length: 3 }, (_, number) =>
    killed(number, { disruption: "TerminationByKubelet" }),
  );
  const preempted = killed(3, { disruption: "PreemptionByScheduler" });
  assert.equal(decideOn([...evicted, preempted]).error, undefined);
  const at = start + 20 * second;
  const end = { complete: false, reason: "BackoffLimitExceeded", message: "too many", at };
  assert.deepEqual(decideOn([...evicted, preempted], { ...child, end }).error, {
    code: "worker_killed",
    message:
      "The cluster ended the worker's pods too often: TerminationByKubelet 3, PreemptionByScheduler 1",
  });
});

test("decide() tries again what nodes refused to run, as often as what the cluster ended", () => {
  const controller = { apiVersion: "batch/v1", kind: "Job", controller: true };
  const refused = (number: number, reason: string, message: string) =>
    toWorkerPod(
      {
        metadata: {
          name: `pod-${number}`,
          uid: `pod-${number}`,
          resourceVersion: "1",
          creationTimestamp: new Date(start + number * second).toISOString(),
          ownerReferences: [{ ...controller, name: child.name, uid: child.uid }],
        },
        spec: { nodeName: "node-1", serviceAccountName: jobSettings.serviceAccount },
        status: { phase: "Failed", reason, message: `Pod was rejected: ${message}` },
      },
      0,
    );
  const allocation = "Allocate failed due to requested number of devices unavailable";
  const pods = [
    refused(0, "Evicted", "The node had condition: [DiskPressure]. "),
    ...[1, 2, 3].map((number) => refused(number, "UnexpectedAdmissionError", allocation)),
  ];
  const { actions, error } = decideOn(pods);
  assert.equal(error, undefined);
  const [write] = actions;
  assert.ok(write?.type === "writeStatus");
  const { lost, reason, message } = write.patch.attempts ?? {};
  assert.deepEqual([lost, reason], [4, "RejectedByNode"]);
  assert.match(
    message ?? "",
    /"pod-3" was refused by its node \(RejectedByNode\): .*Allocate failed/,
  );
});

test("decide() counts the time of all pods of a job towards its deadline", () => {
  const disruption = "TerminationByKubelet";
  const ran = (number: number, from: number, until: number) =>
    killed(number, {
      disruption,
      startedAt: start + from * second,
      termination: {
        exitCode: workerExit.cancelled,
        reason: "Error",
        message: "",
        at: start + until * second,
      },
    });
  const running = makePod(child, { startedAt: start + 20 * second });
  const { actions, error, requeueAt } = decideOn([ran(0, 0, 15), running]);
  const [write, event, ...others] = actions;
  assert.ok(write?.type === "writeStatus" && event?.type === "recordEvent");
  assert.deepEqual([Object.keys(write.patch), event.reason, others], [["attempts"], "PodLost", []]);
  assert.equal(error, undefined);
  assert.equal(requeueAt, start + (30 + 60 - 25) * second);
  const late = [ran(0, -100, -60), ran(1, -50, -38), running];
  assert.equal(decideOn(late).error?.code, "deadline_exceeded");
});

test("decide() ends a pod at its deadline that its node does not end, as a dead one", () => {
  const { deadlineSeconds = 0 } = resource.spec;
  const decideAfter = (seconds: number, pod = makePod(child)) => {
    const now = start + seconds * second;
    return decide(makeObservedState({ resource, workerJobs: [child], pods: [pod], now }));
  };
  const { actions, requeueAt = 0 } = decideAfter(deadlineSeconds);
  assert.deepEqual(actions, [], "the kubelet's clock may differ");
  const seconds = (requeueAt - start) / second;
  const [write] = decideAfter(seconds).actions;
  assert.ok(write?.type === "writeStatus");
  assert.equal(write.patch.error?.code, "deadline_exceeded");
  const exit = { exitCode: 0, reason: "Completed", message: "", at: start + seconds * second };
  const ended = makePod(child, { phase: "Succeeded", termination: exit });
  assert.deepEqual(decideAfter(seconds, ended).actions, [], "it has done its work");
});

test("decide() shows what a crashed worker left as one line without escapes", () => {
  const at = start + 20 * second;
  const message = "\u001b]0;mine\u0007\u009b2J\nCompleted \u202e";
  const exit = { exitCode: 134, reason: "Error", message, at };
  const end = { complete: false, reason: "BackoffLimitExceeded", message: "", at };
  const { error, actions } = decideOn([killed(0, { termination: exit })], { ...child, end });
  const words =
    "The worker exited with code 134: \u{fffd}]0;mine\u{fffd}\u{fffd}2J Completed \u{fffd}";
  assert.deepEqual(error, { code: "worker_crashed", message: words });
  assert.ok(!hasHiddenCharacters(JSON.stringify(actions)));
});

test("decide() gives a job no more time than the operator does", () => {
  const long = makeJob({ metadata: resource.metadata, spec: { deadlineSeconds: 604_800 } });
  const settings = { ...jobSettings, deadlineSeconds: 600 };
  const [create] = decide(makeObservedState({ resource: long, settings })).actions;
  assert.ok(create?.type === "createWorkerJob");
  assert.equal(create.manifest.spec?.template.spec?.activeDeadlineSeconds, 600);
});

test("decide() fails a job whose Job had a deadline of the cluster's, but for one with a result", () => {
  const message = "Job was active longer than specified deadline";
  const at = start + 20 * second;
  const end = { complete: false, reason: "DeadlineExceeded", message, at };
  const decideOnEnd = (words: string) => {
    const exit = { exitCode: workerExit.cancelled, reason: "Error", message: words, at };
    return decideOn([killed(0, { termination: exit })], { ...child, end });
  };
  assert.equal(decideOnEnd("").error?.code, "deadline_exceeded");
  const delivered = JSON.stringify({ outcome: "Completed", lastSeq: 1, delivered: true });
  assert.deepEqual(decideOnEnd(delivered).actions, []);
});

test("decide() asks for a sync of a worker Job a minute after the next pod was due, not before", () => {
  const lostAt = start + 3600 * second;
  const at = new Date(lostAt).toISOString();
  const reason = "EvictionByEvictionAPI";
  for (const [lost, backOff] of [
    [1, 10],
    [4, 80],
    [12, 600],
  ] as const) {
    const attempts = { count: lost, lost, pod: "pod-0", at, reason, message: "" };
    const evicted = makeJob({ metadata: resource.metadata, status: { attempts } });
    const syncsAt = (now: number) =>
      decide(makeObservedState({ resource: evicted, workerJobs: [child], now })).actions.filter(
        ({ type }) => type === "requestSync",
      ).length;
    assert.equal(syncsAt(lostAt + (backOff + 59) * second), 0);
    assert.equal(syncsAt(lostAt + (backOff + 60) * second), 1);
  }
});

test("decide() says that a job waits between two pods, and not after its last one", () => {
  const startedAt = new Date(start).toISOString();
  const at = new Date(start + 10 * second).toISOString();
  const reason = "EvictionByEvictionAPI";
  const attempts = { count: 1, lost: 1, pod: "pod-0", at, reason, message: "" };
  const working = { status: "Optimizing", statusReason: "optimizing", startedAt } as const;
  const { metadata } = resource;
  const evicted = makeJob({ metadata, status: { ...working, attempts } });
  const decidedStatus = (from: typeof evicted, pods: readonly WorkerPod[]) => {
    const now = start + 13 * second;
    const { actions } = decide(
      makeObservedState({ resource: from, workerJobs: [child], pods, now }),
    );
    const write = actions.find((action) => action.type === "writeStatus");
    return { ...from.status, ...write?.patch };
  };
  const waiting = decidedStatus(evicted, []);
  assert.deepEqual(
    [waiting.status, waiting.statusReason, waiting.statusMessage],
    ["Pending", "waiting_for_pod", "Waiting for a pod to begin the work again"],
  );
  const reported = makeJob({ metadata, status: waiting });
  const next = { name: "pod-1", uid: "pod-1", createdAt: start + 10 * second };
  const fetchesImage = makePod(child, { ...next, phase: "Pending" });
  assert.deepEqual(decidedStatus(reported, [fetchesImage]), waiting);
  const running = decidedStatus(reported, [makePod(child, next)]);
  assert.deepEqual([running.status, running.statusReason], ["Pending", "starting"]);
  const succeeded = makePod(child, { ...next, phase: "Succeeded" });
  assert.equal(decidedStatus(evicted, [succeeded]).status, "Optimizing");
});
