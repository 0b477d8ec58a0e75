import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createReadStream } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { getRequestListener } from "@hono/node-server";
import type { z } from "zod";
import { ServiceError } from "../../src/contract/errors.ts";
import type { Job } from "../../src/contract/jobs/job.ts";
import type { PartialRecipe } from "../../src/contract/jobs/recipe.ts";
import { resolveRecipe } from "../../src/contract/jobs/resolve-recipe.ts";
import { builtinTargets } from "../../src/contract/jobs/target.ts";
import {
  type WorkerEvent,
  workerEvent,
  terminationMessage,
} from "../../src/contract/worker-protocol/messages.ts";
import type { JobPart } from "../../src/records/jobs/find-attempts.ts";
import type { AttemptPod } from "../../src/records/jobs/attempt-records.ts";
import type { NewJob } from "../../src/records/jobs/insert-jobs.ts";
import { openRecords, type Records } from "../../src/records/open-records.ts";
import { createServiceMetrics } from "../../src/server/http/service-metrics.ts";
import { createApp } from "../../src/server/create-app.ts";
import { createBodyMemory } from "../../src/server/http/body-memory.ts";
import { createRateLimiter } from "../../src/server/http/rate-limiter.ts";
import { createStorageQuota } from "../../src/server/http/storage-quota.ts";
import { wrongWorkerError } from "../../src/auth/authenticate.ts";
import type { BlobStore } from "../../src/storage/blob-store.ts";
import { createModelSources } from "../../src/storage/sources/model-sources.ts";
import { sourceCredentials } from "../../src/contract/models/source-credentials.ts";
import { createDirectoryBlobStore } from "../../src/storage/directory-blob-store.ts";
import { inheritedEnvironment } from "../support/inherited-environment.ts";
import { readLog } from "../records/read-log.ts";
import { untilRecorded } from "../records/until-recorded.ts";

const workerPath = fileURLToPath(new URL("../../src/worker/main.ts", import.meta.url));
const project = "default";

/** A worker as a pod runs it: without a disk that the service sees, and with its output kept. */
export interface Pod {
  readonly uid: string;
  readonly process: ChildProcess;
  readonly tokenFile: string;
  /** Resolves at the worker's end. */
  readonly ended: Promise<{ code: number | null; output: string; errors: string }>;
  readonly message: () => Promise<string>;
}

export interface PodService {
  readonly url: string;
  readonly folder: string;
  readonly records: Records;
  readonly blobs: BlobStore;
  /** Tokens that the service takes, each with the pod that has it. */
  readonly tokens: Map<string, AttemptPod>;
  /** Sees every request before the service; where it gives true, the service does not answer. */
  onRequest: (request: IncomingMessage, response: ServerResponse) => boolean;
  /** Makes a file an upload of the project. @returns its hash */
  upload(file: string): Promise<string>;
  createJob(
    model: NewJob["model"],
    recipe?: PartialRecipe,
    overrides?: Partial<NewJob>,
  ): Promise<string>;
  find(jobId: string): Promise<Job>;
  readLogTexts(jobId: string): Promise<string[]>;
  /** Resolves when the job is as wanted. */
  until(jobId: string, reached: (job: Job, lines: readonly string[]) => boolean): Promise<void>;
  startPod(jobId: string, part?: JobPart): Promise<Pod>;
  /** Takes the service away from its workers, and brings it back at the same address. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

const readDiskSpace = async () => ({ free: 1e9, reserve: 1e8, total: 2e9 });

interface PodServiceOptions {
  readonly listening?: boolean;
  /** By default in a folder. */
  readonly blobs?: BlobStore;
  readonly credentials?: z.input<typeof sourceCredentials>;
  /** Options of Node for the pods' processes. */
  readonly nodeOptions?: string;
}

/** The real service's HTTP interface on a socket, whose workers prove by tokens which pods they are. */
export async function startPodService(
  t: Pick<TestContext, "after">,
  { listening = true, blobs: ownBlobs, credentials = {}, nodeOptions = "" }: PodServiceOptions = {},
): Promise<PodService> {
  const folder = await mkdtemp(path.join(tmpdir(), "pods-"));
  const now = () => new Date();
  const records = await openRecords(path.join(folder, "records.sqlite"), { now });
  const blobs = ownBlobs ?? (await createDirectoryBlobStore(path.join(folder, "service")));
  const sources = createModelSources(sourceCredentials.parse(credentials));
  const tokens: PodService["tokens"] = new Map();
  const app = createApp({
    records,
    requireSpace: async () => {},
    metrics: createServiceMetrics({ records, now, readDiskSpace }),
    readDiskSpace,
    about: { startedAt: now().toISOString(), versions: {}, records: "sqlite" },
    blobs,
    sources,
    executor: {
      projectNamespace: () => "models",
      workers: {
        async authenticate(token, jobId) {
          const pod = tokens.get(token);
          if (pod === undefined) throw wrongWorkerError(jobId);
          const attempt = await records.attempts.beginPodAttempt(jobId, pod);
          if (attempt === undefined)
            throw new ServiceError("job_finished", "The job needs no worker");
          return { attempt };
        },
      },
      submit: () => {},
      queuePosition: () => undefined,
      readinessProblem: () => undefined,
      close: async () => {},
    },
    targets: builtinTargets,
    quotas: {
      requests: createRateLimiter("requests", 1e9, now),
      exchanges: createRateLimiter("exchanges", 1e9, now),
      workers: createRateLimiter("workers", 1e9, now),
      storage: createStorageQuota(records, blobs, 2 ** 40),
      bodies: createBodyMemory(),
      waitingJobs: 1e9,
      deadlineSeconds: 86_400,
    },
    isTrustedProxy: () => false,
    limits: { maxModelBytes: 2 ** 33, allowedRoots: ["/"], allowPrivateAddresses: true },
    now,
    log: () => {},
  });
  const listener = getRequestListener(app.fetch);
  let server: Server | undefined;
  let port = 0;
  const start = async () => {
    server = createServer((request, response) => {
      if (!service.onRequest(request, response)) void listener(request, response);
    }).listen(port, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    assert(address !== null && typeof address === "object");
    port = address.port;
  };
  const stop = async () => {
    server?.close();
    server?.closeAllConnections();
    if (server?.listening === true) await once(server, "close");
    server = undefined;
  };
  await start();
  if (!listening) await stop();
  const pods: Pod[] = [];
  let started = 0;
  t.after(async () => {
    for (const pod of pods) pod.process.kill("SIGKILL");
    await Promise.all(pods.map(async ({ ended }) => ended));
    await stop();
    await sources[Symbol.asyncDispose]();
    await records.close();
    // Processes that killed workers have started may still write to it.
    await rm(folder, { recursive: true, maxRetries: 20 });
  });
  const find = async (jobId: string) => {
    const job = await records.jobs.find(project, jobId);
    assert(job);
    return job;
  };
  const readLogTexts = async (jobId: string) => {
    return (await readLog(records, jobId)).map((line) => line.text);
  };
  const service: PodService = {
    url: `http://127.0.0.1:${port}`,
    folder,
    records,
    blobs,
    tokens,
    onRequest: () => false,
    async upload(file) {
      const blob = await blobs.write(createReadStream(file));
      await records.projectBlobs.add({ project, origin: null }, blob);
      return blob.sha256;
    },
    async createJob(model, recipe = {}, overrides = {}) {
      const [target] = builtinTargets;
      assert(target);
      const job = await records.jobs.create(project, {
        kind: "compress",
        name: "net",
        model,
        target,
        recipe: resolveRecipe(
          target.recipe,
          { evaluation: { samples: 1, latencyBudgetSeconds: 0 } },
          recipe,
        ),
        gateLimits: {},
        dryRun: false,
        labels: {},
        resource: { namespace: "models", name: "net", uid: null },
        ...overrides,
      });
      return job.id;
    },
    find,
    readLogTexts,
    async until(jobId, reached) {
      await untilRecorded(records, jobId, async () =>
        reached(await find(jobId), await readLogTexts(jobId)),
      );
    },
    async startPod(jobId, part) {
      const uid = `pod-${++started}`;
      const pod = await startPod(service, { jobId, uid, part: part ?? null, nodeOptions });
      pods.push(pod);
      return pod;
    },
    start,
    stop,
  };
  return service;
}

interface PodSpec extends Pick<Pod, "uid"> {
  readonly jobId: string;
  readonly part: JobPart | null;
  readonly nodeOptions: string;
}

async function startPod(
  { folder, url, tokens }: PodService,
  { jobId, uid, part, nodeOptions }: PodSpec,
): Promise<Pod> {
  const home = path.join(folder, uid);
  const work = path.join(home, "work");
  await mkdir(work, { recursive: true });
  const tokenFile = path.join(home, "token");
  await writeFile(tokenFile, `token-of-${uid}\n`);
  tokens.set(`token-of-${uid}`, { podUid: uid, part });
  const messageFile = path.join(home, "termination-log");
  await writeFile(messageFile, "");
  const child = spawn(process.execPath, [workerPath], {
    cwd: work,
    env: {
      ...inheritedEnvironment(),
      TMPDIR: work,
      MOS_SERVICE_URL: url,
      MOS_JOB_ID: jobId,
      MOS_WORK_DIR: work,
      MOS_JOB_TOKEN_FILE: tokenFile,
      MOS_TERMINATION_LOG: messageFile,
      MOS_STOP_SECONDS: "5",
      NODE_OPTIONS: nodeOptions,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  return {
    uid,
    process: child,
    tokenFile,
    ended: output.then(([out, errors]) => ({ code: child.exitCode, output: out, errors })),
    message: async () => readFile(messageFile, "utf8"),
  };
}

/** The events that a pod printed; there is nothing else in its output. */
export function eventsIn(output: string): WorkerEvent[] {
  const lines = output.split("\n");
  assert.equal(lines.pop(), "");
  return lines.map((line) => workerEvent.parse(JSON.parse(line)));
}

export async function parsePodMessage(pod: Pod) {
  return terminationMessage.parse(JSON.parse(await pod.message()));
}
