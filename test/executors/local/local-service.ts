import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import type { Job } from "../../../src/contract/jobs/job.ts";
import { isTerminal } from "../../../src/contract/jobs/status.ts";
import type { Executor } from "../../../src/executors/executor.ts";
import { createLocalExecutor } from "../../../src/executors/local/local-executor.ts";
import type { NewJob } from "../../../src/records/jobs/insert-jobs.ts";
import { openRecords, type Records } from "../../../src/records/open-records.ts";
import { makeNewJob } from "../../records/new-jobs.ts";
import { createDirectoryBlobStore } from "../../../src/storage/directory-blob-store.ts";
import { listenForWorkers } from "./worker-endpoint.ts";
import { inheritedEnvironment } from "../../support/inherited-environment.ts";
import { readLog } from "../../records/read-log.ts";
import { untilRecorded } from "../../records/until-recorded.ts";

const standInWorker = fileURLToPath(new URL("stand-in-worker/main.ts", import.meta.url));
export const project = "default";

export const now = () => new Date();

interface ServiceOptions {
  concurrency?: number;
  folder?: string;
  /** What the executor gets of the records. */
  executorRecords?: (records: Records) => Records;
  log?: (message: string) => void;
  silentWorkerSeconds?: number;
  clock?: () => number;
  deadlineSeconds?: number;
  workerPath?: string;
  /** Jobs of a project at once. */
  /** Files that contained workers must not read. */
  secretFiles?: readonly string[];
  /** Workers get namespaces of their own; folders of the service are hidden. */
  contained?: boolean;
}

/** Records, the worker protocol over HTTP and a local executor that runs stand-in workers. */
export async function startService(t: TestContext, options: ServiceOptions = {}) {
  const {
    concurrency = 2,
    executorRecords = (all) => all,
    log = (message) => assert.fail(message),
  } = options;
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), "local-")));
  const records = await openRecords(join(folder, "records.db"), { now });
  const blobs = await createDirectoryBlobStore(join(folder, "storage"));
  let executor: Executor | undefined;
  const { url, answer, server } = await listenForWorkers(records, blobs, (jobId, secret) => {
    void executor?.workers.authenticate(secret, jobId).catch(() => {});
  });
  const workDirectory = join(folder, "work");
  const start = () =>
    createLocalExecutor({
      records: executorRecords(records),
      serviceUrl: url,
      answerWorker: answer,
      blobs,
      workDirectory,
      concurrency,
      environment: inheritedEnvironment(),
      log,
      workerPath: options.workerPath ?? standInWorker,
      ...(options.contained === true && {
        containment: {
          dataDirectory: folder,
          allowedRoots: [join(folder, "models")],
          secretFiles: options.secretFiles ?? [],
        },
      }),
      silentWorkerSeconds: options.silentWorkerSeconds ?? 600,
      deadlineSeconds: options.deadlineSeconds,
      ...(options.clock && { clock: options.clock }),
    });
  const stops: (() => Promise<void>)[] = [];
  t.after(async () => {
    for (const stop of stops) await stop();
    server.closeAllConnections();
    server.close();
    await records.close();
    await rm(folder, { recursive: true });
  });

  const until = async (
    jobId: string,
    reached: (job: Job, lines: string[]) => boolean,
    owner = project,
  ) =>
    untilRecorded(records, jobId, async () => {
      const job = await records.jobs.find(owner, jobId);
      const lines = (await readLog(records, jobId)).map((line) => line.text);
      assert.ok(job);
      return reached(job, lines) && { job, lines };
    });
  const createFor = async (owner: string, ...behaviours: string[]) => {
    const ids = [];
    for (const name of behaviours) {
      const model = { source: "https://models.test/m.onnx", name };
      ids.push((await records.jobs.create(owner, makeNewJob({ model }))).id);
    }
    return ids;
  };
  const createJob = async (overrides: Partial<NewJob>) =>
    (await records.jobs.create(project, makeNewJob(overrides))).id;
  return {
    records,
    blobs,
    folder,
    createJob,
    workDirectory,
    create: (...behaviours: string[]) => createFor(project, ...behaviours),
    createFor,
    until,
    ended: (jobId: string, owner = project) => until(jobId, (job) => isTerminal(job.status), owner),
    start: async () => {
      const started = await start();
      executor = started;
      stops.push(() => started.close());
      return started;
    },
  };
}
