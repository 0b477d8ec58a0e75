import { randomBytes } from "node:crypto";
import { mkdir, realpath } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { hashSecret } from "../../auth/access-token.ts";
import type { JobError } from "../../contract/errors.ts";
import { maxAttempts, projectWait, silentWorkerSeconds } from "../../contract/limits.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { errorMessage } from "../../log/error-message.ts";
import type { Disruption } from "../../records/jobs/attempt-records.ts";
import type { ProcessIdentity } from "../../records/database/replica.ts";
import type { Executor } from "../executor.ts";
import { isStorageFailure } from "../../storage/file-error.ts";
import { createSecretAuthentication, type WorkerAuthentication } from "../../auth/authenticate.ts";
import { type ContainmentOptions, openContainment } from "./containment.ts";
import { removeScratch } from "./scratch-folder.ts";
import {
  type LaunchOptions,
  launchWorker,
  type LocalAttempt,
  workerExitError,
} from "./worker-process.ts";
import { FairQueue } from "./fair-queue.ts";
import { followReplicas } from "./follow-replicas.ts";
import { resumeUnfinishedJobs } from "./resume-unfinished-jobs.ts";

interface LocalExecutorOptions extends Omit<LaunchOptions, "contain"> {
  /** Parallel workers; by default one for every two cores. */
  readonly concurrency?: number | undefined;
  /** Limit of jobs that have none of their own, seconds of work. */
  readonly deadlineSeconds?: number | undefined;
  readonly log: (message: string) => void;
  /** By default that of the contract. */
  readonly silentWorkerSeconds?: number;
  /** Milliseconds of a clock that nobody sets. */
  readonly clock?: () => number;
  /** Keeps workers from everything but their own; they are not contained without it. */
  readonly containment?: Omit<ContainmentOptions, "moduleCache">;
}

interface OpenedOptions extends LocalExecutorOptions, LaunchOptions {}

/** How the process of an attempt ended; its error counts where the worker reported no result. */
interface AttemptOutcome {
  readonly error: JobError;
  readonly lines: string[];
}

const secretBytes = 32;
const retryMs = 1_000;
/** Reasons of a stop that is not a cancellation. */
const deadlineReached = Symbol("deadline reached");
const silent = Symbol("silent");
const preempted = Symbol("preempted");
/** Between two looks for a project that waits too long. */
const fairnessCheckMs = 1_000;

/**
 * Runs jobs in worker processes on this machine, first those of an earlier run of the service. With
 * replicas, each job is begun by one of them.
 */
export async function createLocalExecutor(options: LocalExecutorOptions): Promise<Executor> {
  const { containment, environment, records, log } = options;
  await mkdir(options.workDirectory, { recursive: true });
  // Workers run in folders of their own, where relative paths would mean something else.
  const workDirectory = await realpath(options.workDirectory);
  await resumeUnfinishedJobs(records, { workDirectory, log });
  const moduleCache = environment["NODE_COMPILE_CACHE"];
  const contain =
    containment && (await openContainment({ ...containment, moduleCache }, { workDirectory, log }));
  const executor = new LocalExecutor({ ...options, workDirectory, contain });
  await executor.findProjects();
  await executor.readUnfinished();
  return executor;
}

class LocalExecutor implements Executor {
  readonly workers: WorkerAuthentication;
  readonly projectRunningJobs: number;
  readonly workerCount: number;
  readonly #options: OpenedOptions;
  readonly #silentSeconds: number;
  readonly #queue: FairQueue;
  /** Whether there are several projects, so that none may hold all workers. */
  #isShared = false;
  /** Of every job that is worked on. */
  readonly #stops = new Map<string, AbortController>();
  /** Of every worker: ends when nothing is heard from it for too long. */
  readonly #silence = new Map<string, NodeJS.Timeout>();
  readonly #runs = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  readonly #unsubscribe: readonly (() => void)[];
  readonly #replicas: ReturnType<typeof followReplicas>;
  readonly #fairnessTimer: NodeJS.Timeout;

  constructor(options: OpenedOptions) {
    this.#options = options;
    this.#silentSeconds = options.silentWorkerSeconds ?? silentWorkerSeconds;
    this.workerCount = options.concurrency ?? Math.max(1, Math.floor(availableParallelism() / 2));
    const { records } = options;
    const onHeard = (id: string) => void this.#silence.get(id)?.refresh();
    this.workers = createSecretAuthentication(records, onHeard);
    // Where several projects wait, none of them takes the last worker.
    this.projectRunningJobs = Math.max(1, this.workerCount - 1);
    const maxRunning = () => (this.#isShared ? this.projectRunningJobs : Infinity);
    this.#queue = new FairQueue(maxRunning, options.clock);
    const { changes } = records;
    const stop = (jobId: string) => this.#stops.get(jobId)?.abort();
    const remove = (jobId: string) => this.#queue.remove(jobId);
    const onEnded = (jobId: string) => {
      remove(jobId);
      // What was kept for an attempt that does not come.
      if (!this.#stops.has(jobId)) void this.#removeScratch(jobId);
    };
    this.#unsubscribe = [changes.on("cancelling", stop), changes.on("ended", onEnded)];
    const add = (project: string, jobIds: readonly string[]) => this.submit(project, jobIds);
    const listRunning = () => [...this.#stops.keys()];
    this.#replicas = followReplicas({ add, remove, listRunning, stop }, options);
    this.#fairnessTimer = setInterval(() => void this.#preempt(), fairnessCheckMs).unref();
  }

  async readUnfinished(): Promise<void> {
    await this.#replicas.readUnfinished();
  }

  /** Looks for projects that were created since. */
  async findProjects(): Promise<void> {
    this.#isShared = (await this.#options.records.projects.list()).length > 1;
  }

  submit(project: string, jobIds: readonly string[]): void {
    this.#queue.add(project, jobIds);
    this.#startWaiting();
  }

  queuePosition(jobId: string): number | undefined {
    return this.#queue.positionOf(jobId);
  }

  readinessProblem(): undefined {}

  async close(): Promise<void> {
    this.#closing.abort();
    clearInterval(this.#fairnessTimer);
    for (const stop of this.#stops.values()) stop.abort();
    await Promise.all(this.#runs);
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    this.#replicas.close();
  }

  #startWaiting(): void {
    while (!this.#closing.signal.aborted && this.#runs.size < this.workerCount) {
      const jobId = this.#queue.take();
      if (jobId === undefined) return;
      const run = this.#runJob(jobId)
        .then((stopReason) => {
          if (stopReason === preempted) this.#queue.putBack(jobId);
        })
        .finally(() => {
          this.#runs.delete(run);
          this.#queue.end(jobId);
          this.#startWaiting();
        });
      this.#runs.add(run);
    }
  }

  /** Preempts the youngest job when a project without a running job has waited too long. */
  async #preempt(): Promise<void> {
    const youngest = this.#queue.findYoungest();
    if (youngest === undefined || this.#runs.size < this.workerCount) return;
    const { jobId, ranMs } = youngest;
    const turnMs = Math.min(ranMs, this.#queue.longestWait());
    const mustWaitMs = projectWait.seconds * 1000;
    const stop = this.#stops.get(jobId);
    if (stop === undefined || turnMs < mustWaitMs) return;
    const { attempts } = this.#options.records;
    const before = await this.#recordWithRetry(() => attempts.countDisrupted(jobId, "preempted"));
    if (before === undefined) return;
    const doublings = Math.min(before, projectWait.doublings);
    if (turnMs >= mustWaitMs * 2 ** doublings) stop.abort(preempted);
  }

  /** @returns why its last attempt was stopped, where it was */
  async #runJob(jobId: string): Promise<unknown> {
    // Set before the attempt is recorded, so that no cancellation falls between the two.
    const stop = new AbortController();
    this.#stops.set(jobId, stop);
    await this.#recordWithRetry(() => this.findProjects());
    const secret = randomBytes(secretBytes).toString("hex");
    const begun = await this.#recordWithRetry(() =>
      this.#options.records.attempts.begin(jobId, hashSecret(secret)),
    );
    const { deadlineSeconds } = this.#options;
    const started = begun && {
      ...begun,
      deadlineSeconds: begun.deadlineSeconds ?? deadlineSeconds,
    };
    if (started !== undefined) await this.#runAttempt({ jobId, secret, ...started }, stop);
    this.#stops.delete(jobId);
    const isTriedAgain = stop.signal.reason === silent && started && !isLastAttempt(started);
    if (isTriedAgain && !this.#closing.signal.aborted) return this.#runJob(jobId);
    return stop.signal.reason;
  }

  async #runAttempt(run: LocalAttempt, stop: AbortController): Promise<void> {
    const { jobId, attempt } = run;
    const timers = this.#startTimers(run, stop);
    const outcome = await this.#runProcess(run, stop.signal);
    for (const timer of timers) clearTimeout(timer);
    this.#silence.delete(jobId);
    const keepsWork = await this.#isTriedAgain(run, stop.signal);
    await this.#removeScratch(jobId, keepsWork);
    const isSilent = stop.signal.reason === silent;
    const lines = stop.signal.aborted ? [] : outcome.lines;
    if (isSilent) lines.push(silentWorkerMessage(this.#silentSeconds));
    const end = {
      error: this.#attemptError(run, outcome, stop.signal),
      lines: lines.map((text) => ({ stream: "stderr" as const, text })),
      disruption: this.#findDisruption(stop.signal),
    };
    const { attempts } = this.#options.records;
    await this.#recordWithRetry(() => attempts.end(jobId, attempt, end));
    // A cancellation meanwhile ends the job with this attempt.
    if (keepsWork && !(await this.#isTriedAgain(run, stop.signal))) {
      await this.#removeScratch(jobId);
    }
  }

  async #isTriedAgain(run: LocalAttempt, signal: AbortSignal): Promise<boolean> {
    const isSilent = signal.reason === silent && !isLastAttempt(run);
    if (!isSilent && this.#findDisruption(signal) === undefined) return false;
    const { jobs } = this.#options.records;
    const status = await this.#recordWithRetry(() => jobs.findStatus(run.jobId));
    return status !== undefined && !isTerminal(status);
  }

  #findDisruption({ reason }: AbortSignal): Disruption | undefined {
    if (this.#closing.signal.aborted) return "service_stopped";
    return reason === preempted ? "preempted" : undefined;
  }

  #startTimers({ jobId, deadlineSeconds }: LocalAttempt, stop: AbortController) {
    const onSilence = () => stop.abort(silent);
    const silence = setTimeout(onSilence, this.#silentSeconds * 1000);
    this.#silence.set(jobId, silence);
    if (deadlineSeconds === undefined) return [silence];
    return [silence, setTimeout(() => stop.abort(deadlineReached), deadlineSeconds * 1000)];
  }

  async #removeScratch(jobId: string, keepsWork = false): Promise<void> {
    const { workDirectory, log } = this.#options;
    try {
      await removeScratch(join(workDirectory, jobId), keepsWork);
    } catch (error) {
      log(`Cannot remove the scratch folder of job "${jobId}": ${errorMessage(error)}`);
    }
  }

  #attemptError(
    { deadlineSeconds, failedAttempts }: LocalAttempt,
    { error }: AttemptOutcome,
    { reason }: AbortSignal,
  ): JobError | null {
    if (this.#closing.signal.aborted || reason === preempted) return null;
    if (reason === deadlineReached) return deadlineExceededError(deadlineSeconds);
    if (reason !== silent) return error;
    const message = silentWorkerMessage(this.#silentSeconds);
    return isLastAttempt({ failedAttempts }) ? { code: "worker_killed", message } : null;
  }

  /** Resolves when no process of the attempt is left. A disk that fails for a while ends no job. */
  async #runProcess(run: LocalAttempt, signal: AbortSignal): Promise<AttemptOutcome> {
    const { records, log } = this.#options;
    const { jobId, attempt } = run;
    const onStarted = (identity: ProcessIdentity) =>
      this.#recordWithRetry(() => records.attempts.recordProcess(jobId, attempt, identity));
    try {
      const exit = await launchWorker(run, this.#options, { signal, onStarted });
      return { error: workerExitError(exit), lines: exit.lines };
    } catch (error) {
      const message = `No worker can be run: ${errorMessage(error)}`;
      log(`${message} (job "${jobId}")`);
      if (isStorageFailure(error) && !signal.aborted) {
        await this.#removeScratch(jobId, true);
        await delay(retryMs, undefined, { signal }).catch(() => {});
        return this.#runProcess(run, signal);
      }
      return { error: { code: "worker_crashed", message }, lines: [] };
    }
  }

  /** Retries until it is recorded; a disk that is full for a while must not lose a job. */
  async #recordWithRetry<T>(record: () => Promise<T>): Promise<T | undefined> {
    for (;;) {
      try {
        return await record();
      } catch (error) {
        this.#options.log(`Cannot record a job's progress: ${errorMessage(error)}`);
        if (this.#closing.signal.aborted) return undefined;
        await delay(retryMs, undefined, { signal: this.#closing.signal }).catch(() => {});
      }
    }
  }
}

function isLastAttempt({ failedAttempts }: Pick<LocalAttempt, "failedAttempts">): boolean {
  return failedAttempts + 1 >= maxAttempts;
}

function silentWorkerMessage(seconds: number): string {
  return `The worker was stopped: nothing was heard from it for ${seconds} s`;
}

function deadlineExceededError(seconds: number | undefined): JobError {
  return {
    code: "deadline_exceeded",
    message: `The job was stopped at its deadline, after ${seconds} s of work`,
  };
}
