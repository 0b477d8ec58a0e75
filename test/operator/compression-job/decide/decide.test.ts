import assert from "node:assert/strict";
import test from "node:test";
import type { Action } from "../../../../operator/controllers/compression-job/decide/decision.ts";
import type { WorkerJob } from "../../../../operator/controllers/compression-job/observe/worker-job.ts";
import { decide } from "../../../../operator/controllers/compression-job/decide/decide.ts";
import type { WorkerPod } from "../../../../operator/controllers/compression-job/observe/worker-pod.ts";
import type { ObservedState } from "../../../../operator/controllers/compression-job/observe/observed-state.ts";
import type { CompressionJobStatus } from "../../../../src/contract/custom-resources/compression-job.ts";
import { recordFinalizer } from "../../../../src/contract/custom-resources/resource-labels.ts";
import type { ErrorCode } from "../../../../src/contract/errors.ts";
import { workerExit } from "../../../../src/contract/worker-protocol/exit-codes.ts";
import { makeChild, makeJob, makePod, makeWarning, makeObservedState, start } from "../make-job.ts";

const withFinalizer = { finalizers: [recordFinalizer] };
const resource = makeJob({ metadata: withFinalizer });
const child = makeChild(resource);
const minute = 60_000;

function writtenStatus(actions: readonly Action[]) {
  return actions.find((action) => action.type === "writeStatus")?.patch;
}

function failed(message = ""): WorkerJob {
  return makeChild(resource, {
    end: { complete: false, reason: "PodFailurePolicy", message, at: start + minute },
  });
}

function exited(
  exitCode: number,
  fields: { reason?: string; message?: string } = {},
): Partial<WorkerPod> {
  return {
    phase: "Failed",
    termination: { exitCode, reason: "Error", message: "", at: start + minute, ...fields },
  };
}

const terminationMessage = JSON.stringify({
  outcome: "Failed",
  error: { code: "model_invalid", message: "No graph" },
  lastSeq: 3,
});
const unparsable = JSON.stringify({ outcome: "Failed", lastSeq: -1 });

const ends: readonly (readonly [string, Partial<WorkerPod>, ErrorCode, RegExp])[] = [
  [
    "the worker reported its error",
    exited(workerExit.failed, { message: terminationMessage }),
    "model_invalid",
    /^No graph$/,
  ],
  [
    "the worker failed without a termination message",
    exited(workerExit.failed),
    "worker_crashed",
    /code 10/,
  ],
  [
    "the worker's termination message is invalid",
    exited(workerExit.failed, { message: unparsable }),
    "worker_crashed",
    /code 10/,
  ],
  ["the worker was stopped", exited(workerExit.cancelled), "worker_killed", /stopped from outside/],
  [
    "the worker crashed",
    exited(workerExit.crashed, { message: "boom" }),
    "worker_crashed",
    /code 70: boom/,
  ],
  [
    "the kernel killed the worker",
    exited(workerExit.killed, { reason: "OOMKilled" }),
    "out_of_memory",
    /ran out of memory/,
  ],
  ["something killed the worker", exited(workerExit.killed), "worker_killed", /from outside/],
  [
    "the worker was killed as its pod was deleted",
    { ...exited(workerExit.killed), deletionDeadline: start },
    "worker_killed",
    /pod was deleted/,
  ],
  [
    "the pod's time was up",
    { ...exited(workerExit.cancelled), reason: "DeadlineExceeded" },
    "deadline_exceeded",
    /longer than its deadline/,
  ],
  [
    "the pod was evicted",
    { phase: "Failed", reason: "Evicted", message: "low on memory" },
    "worker_killed",
    /Evicted: low on/,
  ],
  [
    "the pod used more disk than it may",
    {
      ...exited(workerExit.cancelled),
      reason: "Evicted",
      message: 'Usage of EmptyDir volume "work" exceeds the limit "1Gi". ',
    },
    "out_of_disk",
    /exceeds the limit "1Gi"\.$/,
  ],
  ["the cluster gives no reason", { phase: "Failed" }, "worker_killed", /does not say why/],
];

for (const [why, pod, code, message] of ends) {
  test(`decide() fails a job with ${code} where ${why}`, () => {
    const job = failed();
    const { actions } = decide(
      makeObservedState({
        resource,
        workerJobs: [job],
        pods: [makePod(job, pod)],
        now: start + 2 * minute,
      }),
    );
    const patch = writtenStatus(actions);
    assert.equal(patch?.status, "Failed");
    assert.equal(patch.error?.code, code);
    assert.match(patch.error.message, message);
    assert.equal(patch.finishedAt, new Date(start + 2 * minute).toISOString());
  });
}

test("decide() does not wait for a pod to use too much disk again", () => {
  const evicted = {
    ...exited(workerExit.cancelled),
    reason: "Evicted",
    message: "Pod ephemeral local storage usage exceeds the limit",
  };
  const observe = (pod: Partial<WorkerPod>) =>
    makeObservedState({ resource, workerJobs: [child], pods: [makePod(child, pod)] });
  assert.equal(writtenStatus(decide(observe(evicted)).actions)?.error?.code, "out_of_disk");
  const disrupted = observe({ ...evicted, disruption: "TerminationByKubelet" });
  assert.deepEqual(Object.keys(writtenStatus(decide(disrupted).actions) ?? {}), ["attempts"]);
});

test("decide() takes the error of the pod that the Job controller names, and of the last where it names none", () => {
  const job = failed(
    "Container worker for pod models/first failed with exit code 137 matching FailJob rule at index 1",
  );
  const oom = { reason: "OOMKilled" };
  const first = makePod(job, { name: "first", uid: "1", ...exited(workerExit.killed, oom) });
  const last = makePod(job, {
    name: "last",
    uid: "2",
    phase: "Failed",
    termination: { ...laterExit, exitCode: workerExit.crashed },
  });
  const observed = { resource, pods: [first, last], now: start + 5 * minute };
  assert.equal(
    writtenStatus(decide(makeObservedState({ ...observed, workerJobs: [job] })).actions)?.error
      ?.code,
    "out_of_memory",
  );
  assert.equal(
    writtenStatus(decide(makeObservedState({ ...observed, workerJobs: [failed()] })).actions)?.error
      ?.code,
    "worker_crashed",
  );
});

const laterExit = {
  exitCode: workerExit.crashed,
  reason: "Error",
  message: "",
  at: start + 2 * minute,
};

test("decide() reads the exit code from the Job where its pods are deleted", () => {
  const job = failed(
    "Container worker for pod models/x failed with exit code 137 matching FailJob rule at index 1",
  );
  assert.equal(
    writtenStatus(decide(makeObservedState({ resource, workerJobs: [job] })).actions)?.error?.code,
    "worker_killed",
  );
});

test("decide() takes a result that the service recorded from its report, without a deadline", () => {
  const job = failed();
  const decideAfter = (delivered: boolean, report?: CompressionJobStatus["report"]) => {
    const message = JSON.stringify({ ...JSON.parse(terminationMessage), delivered });
    const { status } = resource;
    return decide(
      makeObservedState({
        resource: { ...resource, status: { ...status, report } },
        workerJobs: [job],
        pods: [makePod(job, exited(workerExit.failed, { message }))],
        now: start + 60 * minute,
      }),
    );
  };
  assert.equal(writtenStatus(decideAfter(false).actions)?.error?.code, "model_invalid");
  assert.deepEqual(decideAfter(true), { actions: [], requeueAt: undefined });
  const at = new Date(start + minute).toISOString();
  const error = { code: "accuracy_below_floor", message: "Too far from the original" } as const;
  const written = writtenStatus(
    decideAfter(true, {
      transitions: [
        { status: "Pending", at },
        { status: "Sharding", at },
        { status: "Failed", at, reason: error.code, message: error.message },
      ],
      error,
    }).actions,
  );
  assert.deepEqual(
    written?.transitions?.map(({ status }) => status),
    ["Sharding", "Failed"],
  );
  assert.equal(written.finishedAt, at);
  assert.deepEqual(written.error, error);
});

test("decide() follows the report while a worker works, unless it is about one that was taken away", () => {
  const at = new Date(start + minute).toISOString();
  const transitions = (["Pending", "Sharding", "Optimizing"] as const).map((status) => ({
    status,
    at,
  }));
  const job = makeChild(resource);
  const statusAfter = (phase: string, status: CompressionJobStatus) =>
    writtenStatus(
      decide(
        makeObservedState({
          resource: makeJob({
            metadata: withFinalizer,
            status: { ...status, report: { transitions } },
          }),
          workerJobs: [job],
          pods: [makePod(job, { phase, node: "node-1" })],
        }),
      ).actions,
    )?.status;
  assert.equal(statusAfter("Running", { status: "Pending" }), "Optimizing");
  assert.equal(statusAfter("Running", { status: "Sharding" }), "Optimizing");
  const interrupted = {
    status: "Pending",
    statusReason: "waiting_for_queue",
    transitions: [...transitions, { status: "Pending", at: new Date(start).toISOString() }],
  } as const satisfies CompressionJobStatus;
  const waiting = { ...interrupted, transitions: [...interrupted.transitions] };
  assert.equal(statusAfter("Running", waiting), undefined);
});

test("decide() records no status that was not observed", () => {
  const job = makeChild(resource, {
    end: { complete: true, reason: "", message: "", at: start + minute },
  });
  const unobserved = writtenStatus(
    decide(makeObservedState({ resource, workerJobs: [job] })).actions,
  )?.transitions;
  assert.deepEqual(
    unobserved?.map(({ status }) => status),
    ["Completed"],
  );
  const transitions = [{ status: "Sharding", at: new Date(start).toISOString() }] as const;
  const observed = makeJob({
    metadata: withFinalizer,
    status: { status: "Sharding", transitions: [...transitions] },
  });
  const complete = writtenStatus(
    decide(makeObservedState({ resource: observed, workerJobs: [job] })).actions,
  )?.transitions;
  assert.deepEqual(
    complete?.map(({ status }) => status),
    ["Sharding", "Completed"],
  );
});

const waitings: readonly (readonly [string, Partial<ObservedState>, string, string])[] = [
  [
    "GPUs that are in use and taints",
    {
      pods: [
        unscheduled(
          "0/5 nodes are available: 1 node(s) had untolerated taint {nvidia.com/gpu: }, 2 node(s) were unschedulable, 2 Insufficient nvidia.com/gpu. no new claims to deallocate, preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling.",
        ),
      ],
    },
    "unschedulable",
    'No node can take the worker: a taint that the target "gpu" does not tolerate (nvidia.com/gpu); cordoned; not enough nvidia.com/gpu free (2 needed)',
  ],
  [
    "a cluster without nodes",
    { pods: [unscheduled("no nodes available to schedule pods")] },
    "unschedulable",
    "No node can take the worker: there are no nodes",
  ],
  [
    "a quota of pods",
    {
      stepWarning: makeWarning(
        'pods "voices-work-x" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=7, limited: requests.nvidia.com/gpu=8',
      ),
    },
    "quota_exceeded",
    'Waiting for the quota "gpus": it needs requests.nvidia.com/gpu=2, and of requests.nvidia.com/gpu=8 there are requests.nvidia.com/gpu=7 in use',
  ],
  [
    "a service account",
    {
      stepWarning: makeWarning(
        'error looking up service account models/worker: serviceaccount "worker" not found',
      ),
    },
    "pod_refused",
    'The cluster refuses the worker\'s pod: error looking up service account models/worker: serviceaccount "worker" not found',
  ],
  [
    "a volume",
    {
      pods: [makePod(child, { phase: "Pending" })],
      stepWarning: makeWarning('MountVolume.SetUp failed: configmap "x" not found'),
    },
    "pod_not_starting",
    'The worker\'s pod cannot be started: MountVolume.SetUp failed: configmap "x" not found',
  ],
];

function unscheduled(message: string): WorkerPod {
  return makePod(child, {
    phase: "Pending",
    node: undefined,
    unscheduled: { reason: "Unschedulable", message, since: start },
  });
}

for (const [what, fields, reason, message] of waitings) {
  test(`decide() reports that a job waits for ${what}, once`, () => {
    const waiting = makeJob({ metadata: withFinalizer, spec: { target: "gpu" } });
    const { actions } = decide(
      makeObservedState({ resource: waiting, workerJobs: [child], ...fields }),
    );
    const patch = writtenStatus(actions);
    assert.equal(patch?.statusReason, reason);
    assert.equal(patch.statusMessage, message);
    const reported = { ...waiting, status: { ...waiting.status, ...patch } };
    assert.deepEqual(
      decide(makeObservedState({ resource: reported, workerJobs: [child], ...fields })).actions,
      [],
    );
  });
}

test("decide() does not report a wait that may end in a moment", () => {
  const pod = makePod(child, {
    phase: "Pending",
    node: undefined,
    unscheduled: {
      reason: "Unschedulable",
      message: "no nodes available to schedule pods",
      since: start + minute,
    },
  });
  const observed = makeObservedState({
    resource,
    workerJobs: [child],
    pods: [pod],
    now: start + minute + 1_000,
  });
  assert.deepEqual(decide(observed), { actions: [], requeueAt: start + minute + 3_000 });
});

test("decide() withdraws the wait when the pod runs", () => {
  const waiting = makeJob({
    metadata: withFinalizer,
    status: {
      statusReason: "unschedulable",
      statusMessage: "No node",
      conditions: [
        {
          type: "Scheduled",
          status: "False",
          reason: "Unschedulable",
          message: "No node",
          lastTransitionTime: "2026-03-01T00:00:00Z",
        },
      ],
    },
  });
  const patch = writtenStatus(
    decide(makeObservedState({ resource: waiting, workerJobs: [child], pods: [makePod(child)] }))
      .actions,
  );
  assert.equal(patch?.statusReason, "starting");
  assert.equal(patch.conditions?.[0]?.status, "True");
});

test("decide() writes nothing about a job that runs", () => {
  const running = makeJob({ metadata: withFinalizer, status: { status: "Optimizing" } });
  assert.deepEqual(
    decide(makeObservedState({ resource: running, workerJobs: [child], pods: [makePod(child)] }))
      .actions,
    [],
  );
});

test("decide() leaves to the next step what is left of the deadline", () => {
  const parallel = makeJob({
    metadata: withFinalizer,
    spec: { recipe: { parallelism: 3 }, deadlineSeconds: 600 },
  });
  const end = { complete: true, reason: "", message: "", at: start + 5 * minute };
  const shard = makeChild(parallel, { step: "shard", parallelism: 3, end });
  const termination = { exitCode: 0, reason: "", message: "", at: start + 5 * minute };
  const pod = makePod(shard, { phase: "Succeeded", startedAt: start + minute, termination });
  const [create] = decide(
    makeObservedState({
      resource: parallel,
      workerJobs: [shard],
      pods: [pod],
      now: start + 6 * minute,
    }),
  ).actions;
  assert.ok(create?.type === "createWorkerJob");
  assert.equal(create.manifest.metadata?.name, "voices-optimize");
  assert.equal(create.manifest.spec?.completions, 3);
  assert.equal(create.manifest.spec.template.spec?.activeDeadlineSeconds, 360);
});

test("decide() does not start a step for which there is no time left", () => {
  const parallel = makeJob({
    metadata: withFinalizer,
    spec: { recipe: { parallelism: 3 }, deadlineSeconds: 60 },
  });
  const end = { complete: true, reason: "", message: "", at: start + 5 * minute };
  const shard = makeChild(parallel, { step: "shard", parallelism: 3, end });
  const { actions } = decide(
    makeObservedState({ resource: parallel, workerJobs: [shard], now: start + 6 * minute }),
  );
  assert.equal(writtenStatus(actions)?.error?.code, "deadline_exceeded");
});

test("decide() keeps a job to the number of shares that it started with", () => {
  const parallel = makeJob({ metadata: withFinalizer, spec: { recipe: { parallelism: 3 } } });
  const end = { complete: true, reason: "", message: "", at: start + minute };
  const shard = makeChild(parallel, { step: "shard", parallelism: 5, end });
  const [create] = decide(makeObservedState({ resource: parallel, workerJobs: [shard] })).actions;
  assert.ok(create?.type === "createWorkerJob");
  assert.equal(create.manifest.spec?.completions, 5);
});

test("decide() starts no step again whose later steps exist", () => {
  const parallel = makeJob({
    metadata: withFinalizer,
    spec: { recipe: { parallelism: 3 } },
    status: { status: "Optimizing" },
  });
  const assemble = makeChild(parallel, { step: "assemble" });
  assert.deepEqual(
    decide(
      makeObservedState({ resource: parallel, workerJobs: [assemble], pods: [makePod(assemble)] }),
    ).actions,
    [],
  );
});

test("decide() deletes Jobs an hour after their end, once the job is recorded", () => {
  const ended = {
    status: "Completed",
    finishedAt: new Date(start + minute).toISOString(),
  } as const;
  const end = { complete: true, reason: "", message: "", at: start + minute };
  const job = makeChild(resource, { end });
  const unrecorded = makeJob({ metadata: withFinalizer, status: ended });
  const observed = { resource: unrecorded, workerJobs: [job], now: start + 900 * minute };
  assert.deepEqual(decide(makeObservedState(observed)).actions, []);
  const done = makeJob({ status: { ...ended, report: { recorded: true } } });
  const recorded = { resource: done, workerJobs: [job] };
  const expiry = end.at + 3_600_000;
  assert.deepEqual(decide(makeObservedState({ ...recorded, now: expiry - 1 })), {
    actions: [],
    requeueAt: expiry,
  });
  assert.deepEqual(decide(makeObservedState({ ...recorded, now: expiry })).actions, [
    { type: "deleteWorkerJob", name: job.name, uid: job.uid },
  ]);
});

test("decide() waits until the Job of an earlier resource of the same name is deleted", () => {
  const leftover = makeChild(resource, {
    controller: { kind: "CompressionJob", name: "voices", uid: "earlier" },
  });
  const { actions, requeueAt } = decide(makeObservedState({ resource, workerJobs: [leftover] }));
  assert.equal(writtenStatus(actions)?.statusReason, "name_in_use");
  assert.ok(requeueAt !== undefined);
  assert.ok(!actions.some(({ type }) => type === "deleteWorkerJob"));
});

test("decide() fails a job whose Job the API server would never take, and waits where it may", () => {
  const forever = { message: "Invalid value", final: true };
  const now = {
    message:
      "exceeded quota: jobs, requested: count/jobs.batch=1, used: count/jobs.batch=9, limited: count/jobs.batch=9",
    final: false,
  };
  assert.equal(
    writtenStatus(decide(makeObservedState({ resource, workerJobRejection: forever })).actions)
      ?.error?.code,
    "pod_start_failed",
  );
  assert.equal(
    writtenStatus(decide(makeObservedState({ resource, workerJobRejection: now })).actions)
      ?.statusReason,
    "quota_exceeded",
  );
});

test("decide() fails a job with fields that it does not allow, and says which", () => {
  const { spec } = resource;
  const wrong = { ...spec, deadlineSeconds: 0, recipe: { minElements: -1 } };
  const { actions } = decide(makeObservedState({ resource: { ...resource, spec: wrong } }));
  assert.deepEqual(writtenStatus(actions)?.error, {
    code: "resource_invalid",
    message:
      "spec.recipe.minElements is -1 and must be at least 0; " +
      "spec.deadlineSeconds is 0 and must be at least 1",
  });
});
