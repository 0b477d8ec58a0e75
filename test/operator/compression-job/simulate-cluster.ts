import type { WorkerJob } from "../../../operator/controllers/compression-job/observe/worker-job.ts";
import {
  mayRun,
  type WorkerPod,
} from "../../../operator/controllers/compression-job/observe/worker-pod.ts";
import { maxAttempts, maxDisruptions } from "../../../src/contract/limits.ts";
import { workerExit } from "../../../src/contract/worker-protocol/exit-codes.ts";
import { makePod, start } from "./make-job.ts";

const retries = maxAttempts - 1 + maxDisruptions;
const graceMs = 10_000;
const finalExits: readonly number[] = [workerExit.failed];
/** Exit codes of running pods, by their choice; one choice more is a disruption. */
const exits = [
  workerExit.completed,
  workerExit.failed,
  workerExit.cancelled,
  workerExit.crashed,
  workerExit.killed,
] as const;

/**
 * The Jobs and pods of one CompressionJob, with the Job controller, the scheduler, nodes and the
 * garbage collector.
 */
export class SimulatedCluster {
  jobs: readonly WorkerJob[] = [];
  pods: readonly WorkerPod[] = [];
  now = start;
  /** Whether workers reach the service, which confirms that it recorded their results. */
  isServed = false;
  #numbers = 0;
  readonly #lostNodes = new Set<string>();
  readonly #forgotten = new Set<string>();
  /** Of every pod, which share of its Job it works on. */
  readonly #shares = new Map<string, number>();
  /** Of every Job, failed pods and shares that are done, also of deleted pods. */
  readonly #failed = new Map<string, Set<string>>();
  readonly #done = new Map<string, Set<number>>();

  isStopped(): boolean {
    return this.jobs.every(({ end }) => end !== undefined) && !this.pods.some(mayRun);
  }

  newUid(): string {
    return `uid-${++this.#numbers}`;
  }

  addJob(job: WorkerJob): void {
    this.jobs = [...this.jobs, job];
  }

  changeJobs(change: (job: WorkerJob) => WorkerJob | undefined): void {
    this.jobs = this.jobs.flatMap((job) => {
      const changed = change(job);
      if (changed !== job) this.#forgotten.delete(job.uid);
      return changed ?? [];
    });
  }

  /** The Job controller syncs none of the present Jobs until it changes. */
  forgetJobs(): void {
    for (const { uid } of this.jobs) this.#forgotten.add(uid);
  }

  #changePods(change: (pod: WorkerPod) => WorkerPod | undefined): void {
    this.pods = this.pods.flatMap((pod) => change(pod) ?? []);
  }

  /** In the background, a Job is deleted before its pods are. */
  deleteJob(uid: string | undefined, background = false): void {
    this.changeJobs((job) =>
      job.uid === uid ? (background ? undefined : { ...job, deleting: true }) : job,
    );
  }

  /** Pods without a node are deleted at once, the others when their node confirms it. */
  deletePod(uid: string | undefined): void {
    this.#changePods((pod) => {
      if (pod.uid !== uid) return pod;
      return pod.node === undefined
        ? undefined
        : { ...pod, deletionDeadline: pod.deletionDeadline ?? this.now + graceMs };
    });
  }

  removePod(uid: string): void {
    this.#changePods((pod) => (pod.uid === uid ? undefined : pod));
  }

  /** The node that pods come to at the moment falls silent. */
  loseNode(): void {
    this.#lostNodes.add(this.#node());
  }

  readyNodes(): ReadonlySet<string> {
    return new Set([this.#node()]);
  }

  #node(): string {
    return `node-${this.#lostNodes.size}`;
  }

  /** The control plane deletes the pods of lost nodes. */
  evict(): void {
    for (const { uid, node } of this.pods) if (this.#lostNodes.has(node ?? "")) this.deletePod(uid);
  }

  /** The Job controller and the garbage collector do their part. */
  sync(): void {
    for (const job of this.jobs) {
      const isSynced = job.end === undefined && !job.suspended && !this.#forgotten.has(job.uid);
      if (job.deleting) this.#deleteInForeground(job);
      else if (isSynced) this.#syncJob(job);
    }
    const uids = new Set(this.jobs.map(({ uid }) => uid));
    for (const { uid, workerJobUid = "" } of this.pods)
      if (!uids.has(workerJobUid)) this.deletePod(uid);
  }

  #deleteInForeground({ uid }: WorkerJob): void {
    const isRunning = this.#listPods(uid).some(mayRun);
    for (const pod of this.#listPods(uid)) this.deletePod(pod.uid);
    this.#changePods((pod) => (pod.workerJobUid === uid && !mayRun(pod) ? undefined : pod));
    if (!isRunning) this.deleteJob(uid, true);
  }

  #syncJob(job: WorkerJob): void {
    const pods = this.#listPods(job.uid);
    const isFinal = pods.some(({ termination }) => finalExits.includes(termination?.exitCode ?? 0));
    if (isFinal || job.ending || getOrCreateSet(this.#failed, job.uid).size > retries) {
      for (const pod of pods.filter(mayRun)) this.deletePod(pod.uid);
      if (!pods.some(mayRun)) this.#endJob(job, false);
      return;
    }
    const done = getOrCreateSet(this.#done, job.uid);
    const shares = Array.from(
      { length: job.step === "optimize" ? job.parallelism : 1 },
      (_, share) => share,
    );
    const isActive = (share: number) =>
      pods.some((pod) => this.#shares.get(pod.uid) === share && mayRun(pod));
    for (const share of shares)
      if (!isActive(share) && !done.has(share)) this.#createPod(job, share);
    if (done.size === shares.length && !pods.some(mayRun)) this.#endJob(job, true);
  }

  #listPods(job: string): WorkerPod[] {
    return this.pods.filter(({ workerJobUid }) => workerJobUid === job);
  }

  #endJob({ uid }: WorkerJob, complete: boolean): void {
    const end = { complete, reason: "", message: "", at: this.now };
    this.changeJobs((job) => (job.uid === uid ? { ...job, end } : job));
  }

  #createPod(job: WorkerJob, share: number): void {
    const uid = this.newUid();
    this.#shares.set(uid, share);
    const unbound = { phase: "Pending", startedAt: undefined, node: undefined };
    this.pods = [
      ...this.pods,
      makePod(job, { uid, name: uid, index: share, createdAt: this.now, ...unbound }),
    ];
  }

  /** What comes next for a pod, by a choice: 0 is always the best. */
  advancePod(index: number, choice: number): void {
    const chosen = this.pods.at(index % Math.max(1, this.pods.length));
    if (chosen === undefined || this.#lostNodes.has(chosen.node ?? "")) return;
    this.changePod(chosen.uid, (pod) => this.#advanced(pod, choice));
    if (chosen.deletionDeadline !== undefined) this.removePod(chosen.uid);
  }

  changePod(uid: string, change: (pod: WorkerPod) => WorkerPod): void {
    this.#changePods((pod) => {
      if (pod.uid !== uid) return pod;
      const { workerJobUid = "", phase, ...changed } = change(pod);
      if (phase === "Failed") getOrCreateSet(this.#failed, workerJobUid).add(uid);
      if (phase === "Succeeded")
        getOrCreateSet(this.#done, workerJobUid).add(this.#shares.get(uid) ?? 0);
      return { ...changed, workerJobUid, phase };
    });
  }

  #advanced(pod: WorkerPod, choice: number): WorkerPod {
    if (!mayRun(pod)) return pod;
    if (pod.deletionDeadline !== undefined) return this.#ended(pod, workerExit.cancelled);
    if (pod.node === undefined) {
      const bound = { node: this.#node(), startedAt: this.now, unscheduled: undefined };
      const unbound = { unscheduled: { reason: "Unschedulable", message: "", since: this.now } };
      return { ...pod, ...(choice === 1 ? unbound : bound) };
    }
    if (pod.phase === "Pending") {
      const unstarted = { waiting: { reason: "ErrImagePull", message: "" } };
      return { ...pod, ...(choice === 1 ? unstarted : { phase: "Running", waiting: undefined }) };
    }
    const exitCode = exits[choice];
    return exitCode === undefined
      ? { ...pod, phase: "Failed", disruption: "PreemptionByScheduler" }
      : this.#ended(pod, exitCode);
  }

  #ended(pod: WorkerPod, exitCode: number): WorkerPod {
    const outcomes: Partial<Record<number, string>> = {
      [workerExit.completed]: "Completed",
      [workerExit.failed]: "Failed",
    };
    const outcome = outcomes[exitCode];
    const error = { code: "model_invalid", message: "The file is not a model" };
    const message =
      outcome === undefined
        ? ""
        : JSON.stringify({ outcome, error, lastSeq: 1, delivered: this.isServed });
    const phase = exitCode === 0 ? "Succeeded" : "Failed";
    return { ...pod, phase, termination: { exitCode, reason: "", message, at: this.now } };
  }
}

function getOrCreateSet<Key, Value>(sets: Map<Key, Set<Value>>, key: Key): Set<Value> {
  const set = sets.get(key) ?? new Set();
  sets.set(key, set);
  return set;
}
