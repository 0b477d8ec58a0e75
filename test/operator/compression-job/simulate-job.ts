import assert from "node:assert/strict";
import type { Action } from "../../../operator/controllers/compression-job/decide/decision.ts";
import type { WorkerJob } from "../../../operator/controllers/compression-job/observe/worker-job.ts";
import { hasReportedEnd } from "../../../operator/controllers/compression-job/decide/job-end.ts";
import { decide } from "../../../operator/controllers/compression-job/decide/decide.ts";
import {
  mayRun,
  type WorkerPod,
} from "../../../operator/controllers/compression-job/observe/worker-pod.ts";
import type { ObservedState } from "../../../operator/controllers/compression-job/observe/observed-state.ts";
import type {
  CompressionJob,
  CompressionJobStatus,
  JobReport,
} from "../../../src/contract/custom-resources/compression-job.ts";
import {
  recordFinalizer,
  resourceLabels,
} from "../../../src/contract/custom-resources/resource-labels.ts";
import {
  canTransition,
  isTerminal,
  type JobStatus,
  leadsTo,
} from "../../../src/contract/jobs/status.ts";
import { hasSeenInterruption, interruptionTime } from "../../../src/resources/interruption.ts";
import { jobStep } from "../../../src/resources/job-identity.ts";
import { readTerminationMessage } from "../../../src/contract/worker-protocol/messages.ts";
import { makeChild, makeObservedState } from "./make-job.ts";
import { SimulatedCluster } from "./simulate-cluster.ts";

/** What may happen to a CompressionJob and around it. */
export type Happening = UserHappening | ClusterHappening;

type UserHappening =
  | { readonly type: "cancel" | "delete" }
  | { readonly type: "suspend"; readonly suspend: boolean }
  | { readonly type: "deleteChild"; readonly job: number; readonly background: boolean }
  | { readonly type: "deletePod"; readonly pod: number };

type ClusterHappening =
  /** The operator decides on what it observed, and is killed after so many actions. */
  | { readonly type: "reconcile"; readonly actions: number }
  | { readonly type: "observe"; readonly of: keyof ObservedObjects }
  /** The operator observes everything, and every component acts. */
  | { readonly type: "progress"; readonly serviceWorks: boolean }
  | { readonly type: "node"; readonly pod: number; readonly choice: number }
  | { readonly type: "sync" | "loseNode" | "evict" | "forget" | "service" }
  | { readonly type: "wait"; readonly seconds: number };

type Transitions = NonNullable<JobReport["transitions"]>;

interface ObservedObjects {
  readonly resource: CompressionJob | undefined;
  readonly jobs: readonly WorkerJob[];
  readonly pods: readonly WorkerPod[];
}

/** A CompressionJob with operator, service and user. Breaking a rule is an assertion error. */
export class SimulatedJob {
  readonly cluster = new SimulatedCluster();
  resource: CompressionJob | undefined;
  /** What the operator's caches have. */
  #observed: ObservedObjects;
  #result: JobStatus | undefined;

  constructor(resource: CompressionJob) {
    this.resource = resource;
    this.#observed = { resource, jobs: [], pods: [] };
  }

  /** What the operator observes; undefined where it observes no resource. */
  observedState(): ObservedState | undefined {
    const { resource, jobs, pods } = this.#observed;
    const { now } = this.cluster;
    const { deletionTimestamp } = resource?.metadata ?? {};
    const deletionSeenAt =
      deletionTimestamp === undefined ? undefined : Date.parse(deletionTimestamp);
    return resource && makeObservedState({ now, resource, deletionSeenAt, workerJobs: jobs, pods });
  }

  observeAll(): void {
    this.#observed = this.#liveObjects();
  }

  #liveObjects(): ObservedObjects {
    const { jobs, pods } = this.cluster;
    return { resource: this.resource, jobs, pods };
  }

  happen(happening: Happening): void {
    if (isUserHappening(happening)) this.#applyUserHappening(happening);
    else this.#applyClusterHappening(happening);
    this.#recordResult();
  }

  #applyUserHappening(happening: UserHappening): void {
    const { jobs, pods } = this.cluster;
    switch (happening.type) {
      case "cancel":
        return this.#change(({ spec }) => ({ spec: { ...spec, cancel: true } }));
      case "suspend":
        return this.#change(({ spec }) => ({ spec: { ...spec, suspend: happening.suspend } }));
      case "delete":
        return this.#change(({ metadata }) => ({
          metadata: { deletionTimestamp: this.#time(), ...metadata },
        }));
      case "deleteChild":
        return this.cluster.deleteJob(
          jobs.at(happening.job % Math.max(1, jobs.length))?.uid,
          happening.background,
        );
      case "deletePod":
        return this.cluster.deletePod(pods.at(happening.pod % Math.max(1, pods.length))?.uid);
    }
  }

  #applyClusterHappening(happening: ClusterHappening): void {
    switch (happening.type) {
      case "reconcile":
        return this.#reconcile(happening.actions);
      case "observe":
        this.#observed = { ...this.#observed, [happening.of]: this.#liveObjects()[happening.of] };
        return;
      case "progress":
        return this.#progress(happening.serviceWorks);
      case "node":
        return this.cluster.advancePod(happening.pod, happening.choice);
      case "sync":
        return this.cluster.sync();
      case "loseNode":
        return this.cluster.loseNode();
      case "evict":
        return this.cluster.evict();
      case "forget":
        return this.cluster.forgetJobs();
      case "service":
        return this.#serve();
      case "wait":
        this.cluster.now += happening.seconds * 1000;
        return;
    }
  }

  #progress(serviceWorks: boolean): void {
    this.cluster.isServed = serviceWorks;
    this.observeAll();
    this.#reconcile(Infinity);
    this.cluster.sync();
    this.cluster.evict();
    for (const pod of this.cluster.pods.keys()) this.cluster.advancePod(pod, 0);
    if (serviceWorks) this.#serve();
  }

  #time(): string {
    return new Date(this.cluster.now).toISOString();
  }

  #reconcile(most: number): void {
    const observed = this.observedState();
    if (observed === undefined) return;
    const decideAgain = () => decide({ ...observed, readyNodes: this.cluster.readyNodes() });
    const { actions } = decide(observed);
    const isObserving = actions.some(({ type }) => type === "observeNodes");
    for (const action of (isObserving ? decideAgain().actions : actions).slice(0, most)) {
      if (!this.#perform(action)) return;
    }
  }

  /** Whether the operator goes on with the next action. */
  #perform(action: Action): boolean {
    switch (action.type) {
      case "writeStatus":
        return this.#write(({ status }) => ({ status: { ...status, ...action.patch } }));
      case "setFinalizer":
        return this.#write(({ metadata }) => ({
          metadata: { ...metadata, finalizers: action.present ? [recordFinalizer] : [] },
        }));
      case "confirmStopped":
        return this.cluster.isStopped();
      case "createWorkerJob":
        return this.#mayStart() && this.#createJob(action);
      case "deleteWorkerJob":
        this.cluster.deleteJob(action.uid, true);
        return true;
      case "endWorkerJob":
        this.cluster.changeJobs((job) =>
          job.name === action.name ? { ...job, ending: true } : job,
        );
        return true;
      case "requestSync":
        this.cluster.changeJobs((job) =>
          job.name === action.name ? { ...job, syncRequestedAt: action.at } : job,
        );
        return true;
      case "deletePod":
        this.cluster.deletePod(action.uid);
        return true;
      case "observeNodes":
        return false;
      case "removeLostPod":
        this.cluster.changePod(action.uid, (pod) => ({
          ...pod,
          phase: "Failed",
          disruption: "NodeUnresponsive",
        }));
        this.cluster.removePod(action.uid);
        return true;
      case "deleteResource":
        this.happen({ type: "delete" });
        return true;
      case "recordEvent":
        return true;
    }
  }

  /** A write of the operator: a conflict where it has not observed the last write. */
  #write(change: (resource: CompressionJob) => Partial<CompressionJob>): boolean {
    if (
      this.resource?.metadata.resourceVersion !== this.#observed.resource?.metadata.resourceVersion
    )
      return false;
    this.#change(change);
    this.#observed = { ...this.#observed, resource: this.resource };
    return this.resource !== undefined;
  }

  #change(change: (resource: CompressionJob) => Partial<CompressionJob>): void {
    const before = this.resource;
    if (before === undefined) return;
    const changed = { ...before, ...change(before) };
    checkTransition(before, changed);
    const isStopped = this.cluster.isStopped();
    const isCancelled =
      changed.status.status === "Cancelled" && before.status.status !== "Cancelled";
    assert.ok(!isCancelled || isStopped, "Cancelled while a pod may run");
    const isReleased = hasRecordFinalizer(before) && !hasRecordFinalizer(changed);
    const isLongDeleted = Date.parse(this.#time()) >= deletionTime(before) + 40_000;
    assert.ok(
      !isReleased || (isStopped && (isRecorded(before) || isLongDeleted)),
      "released before everything was recorded",
    );
    const isDeleted =
      changed.metadata.deletionTimestamp !== undefined && !hasRecordFinalizer(changed);
    const resourceVersion = this.cluster.newUid();
    this.resource = isDeleted
      ? undefined
      : { ...changed, metadata: { ...changed.metadata, resourceVersion } };
    if (isDeleted) for (const { uid } of this.cluster.jobs) this.cluster.deleteJob(uid);
  }

  /** What the operator asks the API server before it creates a Job. */
  #mayStart(): boolean {
    const { resource } = this;
    if (resource === undefined || resource.metadata.deletionTimestamp !== undefined) return false;
    const { status, startedAt, report } = resource.status;
    if (resource.spec.cancel || status === "Cancelling" || isTerminal(status)) return false;
    if (hasReportedEnd(report)) return false;
    const hasBegun =
      status !== "Pending" || startedAt !== undefined || report?.startedAt !== undefined;
    return !hasBegun || this.cluster.isStopped();
  }

  #createJob({ manifest }: Action & { type: "createWorkerJob" }): boolean {
    const { resource, cluster } = this;
    if (resource === undefined || cluster.jobs.some(({ name }) => name === manifest.metadata?.name))
      return false;
    assert.ok(hasRecordFinalizer(resource), "a child without a finalizer");
    assert.ok(
      this.#observed.pods !== cluster.pods || !cluster.pods.some(mayRun),
      "a child beside a pod of another",
    );
    const step = jobStep.parse(manifest.metadata?.labels?.[resourceLabels.step] ?? "work");
    const { suspend = false } = manifest.spec ?? {};
    const parallelism = step === "work" || step === "assemble" ? 1 : 3;
    const times = { createdAt: cluster.now, startedAt: cluster.now };
    cluster.addJob(
      makeChild(resource, {
        step,
        parallelism,
        suspended: suspend,
        uid: cluster.newUid(),
        ...times,
      }),
    );
    return true;
  }

  /** The service reports what it recorded of the workers' reports, and that all is recorded. */
  #serve(): void {
    const { resource, cluster } = this;
    if (resource === undefined) return;
    const { report, ...status } = resource.status;
    if (isTerminal(status.status)) {
      if (cluster.isStopped() && !isRecorded(resource)) this.#report({ ...report, recorded: true });
      return;
    }
    if (resource.spec.cancel || status.status === "Cancelling") return;
    this.#reportWork(status, report?.transitions);
  }

  #reportWork(status: CompressionJobStatus, known: Transitions = []): void {
    const isWorking = this.cluster.pods.some(({ phase }) => phase === "Running");
    const interruptedAt = interruptionTime(status);
    if (!isWorking && interruptedAt !== undefined && !hasSeenInterruption(status, known)) {
      return this.#report({ transitions: [...known, { status: "Pending", at: interruptedAt }] });
    }
    const next = this.#result ?? (isWorking ? this.#nextStatus(known.at(-1)?.status) : undefined);
    if (next === undefined) return;
    const at = this.#time();
    this.#report({ startedAt: at, transitions: [...known, { status: next, at }] });
  }

  /** What a running worker reports next: its result before it exits. */
  #nextStatus(recorded: JobStatus = "Pending"): JobStatus | undefined {
    if (recorded === "Pending" && this.resource?.spec.kind === "compress") return "Sharding";
    if (recorded !== "Optimizing") return "Optimizing";
    const isLast = this.cluster.jobs.some(({ step }) => step === "work" || step === "assemble");
    return isLast ? "Completed" : undefined;
  }

  #report(report: JobReport): void {
    this.#change(({ status }) => ({
      status: { ...status, report: { ...status.report, ...report } },
    }));
  }

  /** The result that the service confirmed to a worker, unless the job was cancelled before. */
  #recordResult(): void {
    if (this.#result !== undefined || this.resource?.status.status === "Cancelling") return;
    for (const { workerJobUid, termination } of this.cluster.pods) {
      const message = readTerminationMessage(termination?.message);
      if (message?.delivered !== true || message.outcome === "Cancelled") continue;
      const step = this.cluster.jobs.find(({ uid }) => uid === workerJobUid)?.step;
      const isLast = step === "work" || step === "assemble";
      if (isLast || message.outcome === "Failed") this.#result = message.outcome;
    }
  }
}

const usersTypes: readonly string[] = [
  "cancel",
  "delete",
  "suspend",
  "deleteChild",
  "deletePod",
] satisfies UserHappening["type"][];

function isUserHappening(happening: Happening): happening is UserHappening {
  return usersTypes.includes(happening.type);
}

function isRecorded({ status }: CompressionJob): boolean {
  return status.report?.recorded === true;
}

function deletionTime({ metadata }: CompressionJob): number {
  return Date.parse(metadata.deletionTimestamp ?? "9999-01-01");
}

export function hasRecordFinalizer({ metadata }: CompressionJob): boolean {
  return metadata.finalizers?.includes(recordFinalizer) ?? false;
}

/** Every status that was entered may come after the one before. */
function checkTransition(
  { spec, status: before }: CompressionJob,
  { status: after }: CompressionJob,
): void {
  if (before.status === after.status) return;
  assert.ok(!isTerminal(before.status), `${before.status} did not stay`);
  const entered =
    after.transitions?.slice(before.transitions?.length ?? 0).map(({ status }) => status) ?? [];
  const path = [before.status, ...(entered.length > 0 ? entered : [after.status])];
  const mayFollow = (from: JobStatus, to: JobStatus) =>
    canTransition(spec.kind, from, to) || leadsTo(spec.kind, from, to);
  const isWay = path.slice(1).every((next, i) => mayFollow(path[i] ?? next, next));
  assert.ok(
    isWay && path.at(-1) === after.status,
    `${path.join(" → ")} is not a way to ${after.status}`,
  );
}
