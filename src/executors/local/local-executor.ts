import { randomBytes } from "node:crypto";
import { mkdir, readdir, rm } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { JobError } from "../../contract/errors.ts";
import { jobId as jobIdSchema } from "../../contract/id.ts";
import type {
  BegunAttempt,
  ProcessIdentity,
  UnfinishedJob,
} from "../../records/attempt-records.ts";
import type { Records } from "../../records/open-records.ts";
import { hashSecret } from "../../auth/access-token.ts";
import type { Executor } from "../executor.ts";
import { createSecretAuthentication, type WorkerAuthentication } from "../worker-authentication.ts";
import { readStartMark, stopProcessGroup } from "./process-group.ts";
import { runWorkerProcess } from "./run-worker-process.ts";
import { workerExitError } from "./worker-exit-error.ts";
import { errorMessage } from "../../log/error-message.ts";

export interface LocalExecutorOptions {
  readonly records: Records;
  /** Where workers reach the service, for instance `http://127.0.0.1:8080`. */
  readonly serviceUrl: string;
  readonly storageDirectory: string;
  /** Folder of the jobs' scratch folders, for this executor alone. */
  readonly workDirectory: string;
  /** Workers at once; by default one for every two cores. */
  readonly concurrency?: number | undefined;
  /** What workers need of this process' environment: PATH and HOME. */
  readonly environment: Readonly<Record<string, string>>;
  readonly log: (message: string) => void;
  readonly workerPath?: string;
}

interface LocalAttempt extends BegunAttempt {
  readonly jobId: string;
  readonly secret: string;
}

/** Attempts after which a job that was interrupted each time is given up. */
const maxAttempts = 3;
const secretBytes = 32;
const retryMs = 1_000;
/** Why a worker is stopped, where it is not cancelled. */
const deadlineReached = Symbol("deadline reached");
const mainWorker = fileURLToPath(new URL("../../worker/main.ts", import.meta.url));

/** Runs jobs in worker processes on this machine, first those that an earlier run of the service left. */
export async function createLocalExecutor(options: LocalExecutorOptions): Promise<Executor> {
  await mkdir(options.workDirectory, { recursive: true });
  const unfinished = await options.records.attempts.listUnfinished();
  await Promise.all(
    unfinished.filter((job) => job.live).map((job) => endInterrupted(options.records, job)),
  );
  await removeScratch(options.workDirectory);
  const executor = new LocalExecutor(options);
  executor.submit(unfinished.map((job) => job.jobId));
  return executor;
}

class LocalExecutor implements Executor {
  readonly workers: WorkerAuthentication;
  readonly #options: LocalExecutorOptions;
  readonly #concurrency: number;
  readonly #waiting: string[] = [];
  /** Of every job that is worked on. */
  readonly #stops = new Map<string, AbortController>();
  readonly #runs = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  readonly #unsubscribe: () => void;

  constructor(options: LocalExecutorOptions) {
    // Workers run in folders of their own, where relative paths would mean something else.
    const [storageDirectory, workDirectory] = [
      resolve(options.storageDirectory),
      resolve(options.workDirectory),
    ];
    this.#options = { ...options, storageDirectory, workDirectory };
    this.#concurrency = options.concurrency ?? Math.max(1, Math.floor(availableParallelism() / 2));
    this.workers = createSecretAuthentication(options.records);
    this.#unsubscribe = options.records.changes.onCancelling((jobId) =>
      this.#stops.get(jobId)?.abort(),
    );
  }

  submit(jobIds: readonly string[]): void {
    for (const jobId of jobIds) this.#waiting.push(jobId);
    this.#startWaiting();
  }

  readinessProblem(): undefined {}

  async close(): Promise<void> {
    this.#closing.abort();
    for (const stop of this.#stops.values()) stop.abort();
    await Promise.all(this.#runs);
    this.#unsubscribe();
  }

  #startWaiting(): void {
    while (!this.#closing.signal.aborted && this.#runs.size < this.#concurrency) {
      const jobId = this.#waiting.shift();
      if (jobId === undefined) return;
      const run = this.#runJob(jobId).finally(() => {
        this.#runs.delete(run);
        this.#startWaiting();
      });
      this.#runs.add(run);
    }
  }

  async #runJob(jobId: string): Promise<void> {
    // Known before the attempt is recorded, so that no cancellation falls between the two.
    const stop = new AbortController();
    this.#stops.set(jobId, stop);
    const secret = randomBytes(secretBytes).toString("hex");
    const begun = await this.#recordWithRetry(() =>
      this.#options.records.attempts.begin(jobId, hashSecret(secret)),
    );
    if (begun !== undefined) await this.#runAttempt({ jobId, secret, ...begun }, stop);
    this.#stops.delete(jobId);
  }

  async #runAttempt(run: LocalAttempt, stop: AbortController): Promise<void> {
    const { records, workDirectory, log } = this.#options;
    const { deadlineSeconds } = run;
    const onDeadline = () => stop.abort(deadlineReached);
    const deadline =
      deadlineSeconds === undefined ? undefined : setTimeout(onDeadline, deadlineSeconds * 1000);
    const { error, lines } = await this.#runProcess(run, stop.signal);
    clearTimeout(deadline);
    await rm(join(workDirectory, run.jobId), { recursive: true, force: true }).catch(
      (cause: unknown) => {
        log(`Cannot remove the scratch folder of job "${run.jobId}": ${errorMessage(cause)}`);
      },
    );
    const isLate = stop.signal.reason === deadlineReached;
    const end = {
      error: this.#closing.signal.aborted
        ? null
        : isLate
          ? deadlineExceededError(deadlineSeconds)
          : error,
      lines: stop.signal.aborted ? [] : lines.map((text) => ({ stream: "stderr" as const, text })),
    };
    await this.#recordWithRetry(() => records.attempts.end(run.jobId, run.attempt, end));
  }

  /** Resolves when no process of the attempt is left, with what the job fails with if the worker told no result. */
  async #runProcess(
    { jobId, attempt, secret }: LocalAttempt,
    signal: AbortSignal,
  ): Promise<{ error: JobError; lines: string[] }> {
    const {
      records,
      workDirectory,
      serviceUrl,
      storageDirectory,
      workerPath = mainWorker,
    } = this.#options;
    const directory = join(workDirectory, jobId);
    const environment = {
      ...this.#options.environment,
      // ONNX Runtime reports the models it loads to its makers unless it is told not to.
      ORT_DISABLE_TELEMETRY: "1",
      TMPDIR: directory,
      MOS_SERVICE_URL: serviceUrl,
      MOS_JOB_ID: jobId,
      MOS_JOB_TOKEN: secret,
      MOS_STORAGE_DIR: storageDirectory,
      MOS_WORK_DIR: directory,
    };
    const onStarted = (mark: ProcessIdentity) =>
      this.#recordWithRetry(() => records.attempts.recordProcess(jobId, attempt, mark));
    try {
      await mkdir(directory, { recursive: true });
      const death = await runWorkerProcess(
        { workerPath, directory, environment, onStarted },
        signal,
      );
      return { error: workerExitError(death), lines: death.lines };
    } catch (error) {
      const message = `No worker can be run: ${errorMessage(error)}`;
      this.#options.log(`${message} (job "${jobId}")`);
      return { error: { code: "worker_crashed", message }, lines: [] };
    }
  }

  /** Tries until the records take it; a disk that is full for a while must not lose a job. */
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

function deadlineExceededError(seconds: number | undefined): JobError {
  return {
    code: "deadline_exceeded",
    message: `The job was stopped at its deadline, after ${seconds} s of work`,
  };
}

/** Makes sure that no process of the attempt is left, and records its end. */
async function endInterrupted(
  records: Records,
  { jobId, attempt, process }: UnfinishedJob,
): Promise<void> {
  if (process !== null && (await readStartMark(process.pid)) === process.startMark)
    await stopProcessGroup(process.pid, 0);
  const message = `The service restarted ${maxAttempts} times while the job ran`;
  const error = attempt >= maxAttempts ? { code: "service_restarted" as const, message } : null;
  await records.attempts.end(jobId, attempt, { error, lines: [] });
}

async function removeScratch(workDirectory: string): Promise<void> {
  const names = await readdir(workDirectory);
  const scratch = names.filter((name) => jobIdSchema.safeParse(name).success);
  await Promise.all(
    scratch.map((name) => rm(join(workDirectory, name), { recursive: true, force: true })),
  );
}
