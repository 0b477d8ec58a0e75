import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { getRequestListener } from "@hono/node-server";
import { ServiceError } from "../contract/errors.ts";
import { builtinTargets } from "../contract/target.ts";
import { openGitHubApp } from "../github-app/open-github-app.ts";
import type { SubmitRerun } from "../github-app/rerun-jobs.ts";
import { openRecords, type Records } from "../records/open-records.ts";
import { defaultProject } from "../records/default-project.ts";
import { createDirectoryBlobStore } from "../storage/directory-blob-store.ts";
import { submitBatch } from "../server/batch-handlers.ts";
import { createApp } from "../server/create-app.ts";
import { lockDataDirectory } from "./lock-data-directory.ts";
import type { Log } from "../log/json-log.ts";
import { listen } from "./listen.ts";
import { openExecutor } from "./open-executor.ts";
import { problemResponse } from "../server/problem-response.ts";
import { readTargets } from "../settings/read-targets.ts";
import { readGitHubAppOptions } from "./read-github-app-options.ts";
import { readTrustPolicy } from "./read-trust-policy.ts";
import type { Settings } from "./settings.ts";
import { createToken } from "../auth/create-token.ts";

interface ServiceDependencies {
  readonly now: () => Date;
  readonly log: Log;
  /** What workers need of the environment. */
  readonly workerEnvironment: Readonly<Record<string, string>>;
}

export interface RunningService {
  /** Without `/v1`. */
  readonly url: string;
  /** A token with every scope, where the service had none and its output is its user's own. */
  readonly firstToken: string | undefined;
  /** Stops workers and answers; what was worked on is taken up at the next start. */
  close(): Promise<void>;
}

/** Time for requests that are being answered when the service stops. */
const closeGraceMs = 2_000;
/** After it a connection is asked whether it is still there: one that is gone holds an upload that could go on. */
const keepAliveInitialDelay = 30_000;
/** Room for every query parameter at its longest, percent-encoded, bytes. */
const maxHeaderSize = 65_536;
const hourMs = 3_600_000;

export async function startService(
  settings: Settings,
  dependencies: ServiceDependencies,
): Promise<RunningService> {
  const {
    MOS_DATA_DIR: directory,
    MOS_TARGETS_FILE: targetsFile,
    MOS_TRUST_POLICY_FILE: trustFile,
  } = settings;
  const { now, log } = dependencies;
  await using stack = new AsyncDisposableStack();
  await mkdir(directory, { recursive: true });
  const targets = targetsFile === undefined ? builtinTargets : await readTargets(targetsFile);
  const trust = trustFile === undefined ? undefined : await readTrustPolicy(trustFile);
  const credentials = await readGitHubAppOptions(settings);
  stack.use(lockDataDirectory(directory));
  const records = await openRecords(databasePath(directory), { now });
  stack.defer(() => records.close());
  await records.idempotency.reset();
  const blobs = await createDirectoryBlobStore(directory);
  const purge = () =>
    Promise.all(
      [records.idempotency, records.tokens, records.identities, blobs].map((each) => each.purge()),
    );
  const purging = setInterval(() => void purge(), hourMs);
  stack.defer(() => clearInterval(purging));

  let respond = (request: Request): Response | Promise<Response> =>
    problemResponse(startingError(), request, log);
  const server = createHttpServer((request) => respond(request));
  const url = await listen(server, { host: settings.MOS_HOST, port: settings.MOS_PORT });
  stack.defer(() => closeServer(server));
  const executor = await openExecutor(settings, {
    ...dependencies,
    records,
    targets,
    serviceUrl: url,
  });
  stack.defer(() => executor.close());
  const submit: SubmitRerun = async (project, order) => submitBatch(context, project, order);
  const github = credentials && openGitHubApp(credentials, { records, submit, log });
  if (github) stack.defer(async () => github.close());
  const limits = {
    maxModelBytes: settings.MOS_MAX_MODEL_BYTES,
    allowedRoots: settings.MOS_ALLOWED_ROOTS,
    allowPrivateAddresses: settings.MOS_ALLOW_PRIVATE_ADDRESSES,
  };
  const context = { records, blobs, executor, targets, limits, trust, github, now, log };
  const app = createApp(context);
  respond = (request) => app.fetch(request);
  // What a pod prints is kept and read by others: there, whoever may run commands in the pod makes the first token.
  const isPod = settings.KUBERNETES_SERVICE_HOST !== undefined;
  const firstToken = isPod ? undefined : await createFirstToken(records, now());
  const running = stack.move();
  return { url, firstToken, close: () => running.disposeAsync() };
}

/** Undefined where there is a token already. */
async function createFirstToken(records: Records, now: Date): Promise<string | undefined> {
  if ((await records.tokens.list(defaultProject)).length > 0) return undefined;
  const created = await createToken(records, {
    name: "first",
    scopes: ["admin"],
    project: defaultProject,
    now,
  });
  return created.token;
}

export function databasePath(directory: string): string {
  return join(directory, "service.sqlite");
}

function startingError(): ServiceError {
  return new ServiceError("unavailable", "The service is starting", {
    headers: { "retry-after": "1" },
  });
}

function createHttpServer(fetch: (request: Request) => Response | Promise<Response>): Server {
  const listener = getRequestListener(fetch, { overrideGlobalObjects: false });
  // A model takes as long as it takes to upload: only the time for the headers is limited.
  const options = {
    keepAlive: true,
    keepAliveInitialDelay,
    keepAliveTimeout: 60_000,
    requestTimeout: 0,
    maxHeaderSize,
  };
  return createServer(options, (incoming, outgoing) => {
    void listener(incoming, outgoing);
  });
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), closeGraceMs);
  await closed;
  clearTimeout(timer);
}
