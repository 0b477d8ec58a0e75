import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { SpanExporter } from "@opentelemetry/sdk-trace";
import type { Hono } from "hono";
import type { z } from "zod";
import { type Problem, problem } from "../../src/contract/errors.ts";
import { type Job, job, type JobRequest } from "../../src/contract/jobs/job.ts";
import { builtinTargets } from "../../src/contract/jobs/target.ts";
import type { Scope } from "../../src/contract/people/token.ts";
import type { TrustPolicy } from "../../src/contract/people/trust-policy.ts";
import { type GitHubAppOptions, openGitHubApp } from "../../src/github-app/open-github-app.ts";
import {
  type UnnumberedEvent,
  workerEventsAnswer,
} from "../../src/contract/worker-protocol/messages.ts";
import { type Records, openRecords } from "../../src/records/open-records.ts";
import { openTestBlobs } from "../support/test-blobs.ts";
import { testDatabase } from "../support/test-database.ts";
import { defaultProject } from "../../src/contract/project.ts";
import { hashSecret } from "../../src/auth/access-token.ts";
import { resubmitJobs } from "../../src/server/handlers/resubmit-jobs.ts";
import { createBodyMemory } from "../../src/server/http/body-memory.ts";
import { createRateLimiter } from "../../src/server/http/rate-limiter.ts";
import { createStorageQuota } from "../../src/server/http/storage-quota.ts";
import { createApp } from "../../src/server/create-app.ts";
import { createServiceMetrics } from "../../src/server/http/service-metrics.ts";
import type { Log } from "../../src/log/json-log.ts";
import type { ServerContext } from "../../src/server/http/server-context.ts";
import { createSecretAuthentication } from "../../src/auth/authenticate.ts";
import { createToken } from "../../src/auth/create-token.ts";
import { createSingleSignOn, type SingleSignOnOptions } from "../../src/auth/single-sign-on.ts";
import { createTokenExchange } from "../../src/auth/token-exchange.ts";
import { createModelSources } from "../../src/storage/sources/model-sources.ts";
import { sourceCredentials } from "../../src/contract/models/source-credentials.ts";
import type { BlobStore } from "../../src/storage/blob-store.ts";
import { createSampler, openTracing } from "../../src/tracing/open-tracing.ts";
import { until } from "../support/until.ts";

interface Question {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Another token than the administrator's; null sends none. */
  readonly token?: string | null;
}

export interface TestApp {
  readonly app: Hono;
  readonly records: Records;
  readonly blobs: BlobStore;
  /** Ids of the jobs that were given to the executor. */
  readonly submitted: string[];
  /** Entries of the service's log. */
  readonly logged: string[];
  readonly directory: string;
  /** Closes GitHub App, traces and records before the test ends. */
  readonly stop: () => Promise<void>;
  /** Token with every scope. */
  readonly admin: string;
  /** The service's time. */
  readonly now: () => Date;
  /** Moves the service's clock. */
  readonly advance: (ms: number) => void;
  readonly tokenFor: (...scopes: [Scope, ...Scope[]]) => Promise<string>;
  readonly ask: (call: string, question?: Question) => Promise<Response>;
}

const emptyDisk = async () => ({ free: 1e9, reserve: 1e8, total: 2e9 });
const start = Date.parse("2026-01-01T00:00:00Z");

interface TestAppOptions {
  /** As in a cluster, of jobs whose resources wait for their records. */
  readonly awaitsRecord?: (jobId: string) => boolean;
  readonly trust?: TrustPolicy;
  readonly github?: GitHubAppOptions;
  readonly requestsPerMinute?: number;
  readonly exchangesPerMinute?: number;
  readonly workerRequestsPerMinute?: number;
  readonly maxWaitingJobs?: number;
  readonly singleSignOn?: SingleSignOnOptions;
  readonly sources?: z.input<typeof sourceCredentials>;
  readonly maxStoredBytes?: number;
  readonly allowPrivateAddresses?: boolean;
  readonly isTrustedProxy?: (address: string) => boolean;
  readonly requireSpace?: () => Promise<void>;
  readonly readDiskSpace?: () => ReturnType<typeof emptyDisk>;
  /** Files are in a folder also where others are in a bucket, which keeps whole parts of uploads. */
  readonly keepsFolder?: boolean;
  /** Database file of an earlier service. */
  readonly database?: string;
  /** Requests and jobs are traced. */
  readonly tracing?: SpanExporter;
}

/** The service's HTTP interface on records in memory and files in a folder, with an executor that starts no job. */
export async function makeTestApp(t: TestContext, options: TestAppOptions = {}): Promise<TestApp> {
  let elapsed = 0;
  const now = () => new Date(start + elapsed);
  const directory = await mkdtemp(join(tmpdir(), "app-"));
  const records = await openRecords(options.database ?? (await testDatabase()), {
    now,
    maxWaitingJobs: options.maxWaitingJobs ?? Infinity,
  });
  const logged: string[] = [];
  const log: Log = (level, message, fields) =>
    logged.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const github =
    options.github &&
    openGitHubApp(options.github, {
      records,
      log,
      submit: async (...order) => resubmitJobs(context, ...order),
    });
  const tracing = openTestTracing(options.tracing, { records, now, log });
  let isStopped = false;
  const stop = async () => {
    if (isStopped) return;
    isStopped = true;
    await github?.close();
    await tracing?.[Symbol.asyncDispose]();
    await records.close();
  };
  t.after(async () => {
    await stop();
    await rm(directory, { recursive: true });
  });
  const blobs = await openTestBlobs(t, join(directory, "storage"), options.keepsFolder);
  const sources = createModelSources(sourceCredentials.parse(options.sources ?? {}));
  t.after(() => sources[Symbol.asyncDispose]());
  const submitted: string[] = [];
  const { readDiskSpace = emptyDisk } = options;
  const context: ServerContext = {
    quotas: createTestQuotas(options, { records, blobs, now }),
    isTrustedProxy: options.isTrustedProxy ?? (() => false),
    records,
    blobs,
    sources,
    requireSpace: async () => options.requireSpace?.(),
    executor: {
      workers: createSecretAuthentication(records),
      submit: (_project, ids) => submitted.push(...ids),
      queuePosition: (id) => (submitted.includes(id) ? submitted.indexOf(id) + 1 : undefined),
      awaitsRecord: options.awaitsRecord ?? (() => false),
      readinessProblem: () => undefined,
      close: async () => {},
    },
    targets: builtinTargets,
    metrics: createServiceMetrics({ records, now, readDiskSpace, tracing }),
    tracing,
    readDiskSpace,
    about: { startedAt: now().toISOString(), versions: { service: "1.2.3" }, records: "sqlite" },
    limits: {
      maxModelBytes: 1000,
      allowedRoots: [directory],
      allowPrivateAddresses: options.allowPrivateAddresses ?? false,
    },
    trust: options.trust,
    exchangeToken: options.trust && createTokenExchange({ records, now, log }, options.trust),
    github,
    ...openSingleSignOn(options.singleSignOn),
    now,
    log,
  };
  const app = createApp(context);
  const tokenFor = async (...scopes: [Scope, ...Scope[]]) => {
    const created = await createToken(records, {
      name: "test",
      scopes,
      project: defaultProject,
      now: now(),
    });
    return created.token;
  };
  const admin = await tokenFor("admin");
  return {
    app,
    records,
    blobs,
    submitted,
    logged,
    directory,
    stop,
    admin,
    now,
    advance: (ms) => (elapsed += ms),
    tokenFor,
    async ask(call, { body, headers = {}, token = admin } = {}) {
      const [method = "", path = ""] = call.split(" ");
      const all = new Headers();
      if (token !== null) all.set("authorization", `Bearer ${token}`);
      if (body !== undefined) all.set("content-type", "application/json");
      for (const [name, value] of Object.entries(headers)) all.set(name, value);
      const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
      return app.request(path, { method, headers: all, body: text ?? null });
    },
  };
}

function createTestQuotas(
  options: TestAppOptions,
  { records, blobs, now }: Pick<ServerContext, "records" | "blobs" | "now">,
): ServerContext["quotas"] {
  const { requestsPerMinute = 1e9, exchangesPerMinute = 1e9 } = options;
  const { workerRequestsPerMinute = 1e9 } = options;
  return {
    requests: createRateLimiter("requests", requestsPerMinute, now),
    exchanges: createRateLimiter("exchanges", exchangesPerMinute, now),
    workers: createRateLimiter("workers", workerRequestsPerMinute, now),
    storage: createStorageQuota(records, blobs, options.maxStoredBytes ?? 1e9),
    bodies: createBodyMemory(),
    waitingJobs: options.maxWaitingJobs ?? 1e9,
    deadlineSeconds: 86_400,
  };
}

function openTestTracing(
  exporter: SpanExporter | undefined,
  parts: Pick<Parameters<typeof openTracing>[2], "records" | "now" | "log">,
) {
  const sampler = createSampler("parentbased_always_on", 1);
  return exporter && openTracing(exporter, sampler, { ...parts, version: "1.2.3" });
}

function openSingleSignOn(options: SingleSignOnOptions | undefined) {
  if (options === undefined) return {};
  return { singleSignOn: createSingleSignOn(options), publicUrl: options.publicUrl };
}

/** The problem that an answer holds, which has to have the answer's status. */
export async function problemIn(answer: Response): Promise<Problem> {
  assert.equal(answer.headers.get("content-type"), "application/problem+json");
  const parsed = problem.parse(await answer.json());
  assert.equal(parsed.status, answer.status);
  return parsed;
}

/** Begins an attempt at a job, and reports events as its worker. */
export async function beginTestWorker({ app, records, ask }: TestApp, jobId: string) {
  const secret = `secret-of-${jobId}`;
  await records.attempts.begin(jobId, hashSecret(secret));
  let seq = 0;
  return {
    secret,
    /** Stores a file as the worker. */
    async store(content: string) {
      const sha256 = createHash("sha256").update(content).digest("hex");
      const url = `/worker/v1/jobs/${jobId}/blobs/${sha256}`;
      const headers = { authorization: `Bearer ${secret}` };
      const answer = await app.request(url, { method: "PUT", headers, body: content });
      assert.equal(answer.status, 201);
      return { sha256, bytes: Buffer.byteLength(content) };
    },
    async report(...events: readonly UnnumberedEvent[]) {
      const numbered = events.map((event) => ({
        ...event,
        seq: ++seq,
        at: "2026-01-01T00:00:00.000Z",
      }));
      const call = `POST /worker/v1/jobs/${jobId}/events`;
      const answer = await ask(call, { token: secret, body: { events: numbered } });
      return workerEventsAnswer.parse(await answer.json());
    },
  };
}

/** The file that a worker gets: that of the bucket where the service names its address there. */
export async function followAddress(answer: Response): Promise<Response> {
  const address = answer.status === 307 ? answer.headers.get("location") : null;
  return address === null ? answer : fetch(address);
}

export function logEvent(text: string): UnnumberedEvent {
  return { type: "log", stream: "stdout", text };
}

/** A job of the app for a model that is never fetched. */
export async function startJob(
  { ask }: TestApp,
  overrides: Partial<JobRequest> = {},
): Promise<Job> {
  const body = {
    model: { source: "https://models.example/detector.onnx" },
    target: "cpu",
    ...overrides,
  };
  return job.parse(await (await ask("POST /v1/compress", { body })).json());
}

/** Resolves when so many bytes of the only upload have arrived in the app's folder. */
export async function untilReceived({ directory }: TestApp, bytes: number): Promise<void> {
  const incoming = join(directory, "storage", "incoming");
  await until(`${bytes} bytes have arrived`, async () => {
    const [file] = await readdir(incoming);
    return file !== undefined && (await stat(join(incoming, file))).size === bytes;
  });
}
