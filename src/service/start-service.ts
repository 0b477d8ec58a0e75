import type { RequestListener } from "node:http";
import { Hono } from "hono";
import { createSingleSignOn, type SingleSignOn } from "../auth/single-sign-on.ts";
import { createTokenExchange } from "../auth/token-exchange.ts";
import { ServiceError } from "../contract/errors.ts";
import { defaultProject } from "../contract/project.ts";
import { builtinTargets, type Target } from "../contract/jobs/target.ts";
import type { TrustPolicy } from "../contract/people/trust-policy.ts";
import { type GitHubAppOptions, openGitHubApp } from "../github-app/open-github-app.ts";
import type { SubmitRerun } from "../github-app/webhook-receiver.ts";
import type { Log } from "../log/json-log.ts";
import type { Records } from "../records/open-records.ts";
import { resubmitJobs } from "../server/handlers/resubmit-jobs.ts";
import { createApp } from "../server/create-app.ts";
import { problemResponse } from "../server/http/problem-response.ts";
import type { ServerContext } from "../server/http/server-context.ts";
import { createServiceMetrics } from "../server/http/service-metrics.ts";
import { readTargets } from "../settings/read-targets.ts";
import type { BlobStore } from "../storage/blob-store.ts";
import type { DiskSpace } from "../storage/disk-space.ts";
import { createModelSources } from "../storage/sources/model-sources.ts";
import { startWebhookSender } from "../webhooks/webhook-sender.ts";
import { createSignInLink } from "../auth/sign-in.ts";
import type { Dashboard } from "../server/http/bind-dashboard.ts";
import { loadDashboard } from "./load-dashboard.ts";
import { signInAddress } from "./commands/sign-in-command.ts";
import { createFirstToken, offerFirstSignIn } from "./first-sign-in.ts";
import { createQuotas } from "./settings/create-quotas.ts";
import { buildRetention } from "./settings/storage-settings.ts";
import { describeService } from "./describe-service.ts";
import { openExecutor } from "./open-executor.ts";
import { openStorage } from "./storage-folder/open-storage.ts";
import { readGitHubAppOptions } from "./settings/read-github-app-options.ts";
import { readSingleSignOn } from "./settings/read-single-sign-on.ts";
import { readS3Access, readSourceCredentials } from "./settings/read-credentials.ts";
import { openServiceTracing } from "./open-service-tracing.ts";
import { readTrustPolicy } from "./settings/read-trust-policy.ts";
import { recordsPlace } from "./storage-folder/data-directory.ts";
import { requireAllowedRoots } from "./settings/require-allowed-roots.ts";
import type { Settings } from "./settings/settings.ts";
import { type HttpServer, startHttpServer } from "./http-server/start-http-server.ts";
import { readTlsCertificate } from "./http-server/tls-certificate.ts";

interface ServiceDependencies {
  readonly now: () => Date;
  readonly log: Log;
  /** Environment variables of workers on this machine. */
  readonly workerEnvironment: Readonly<Record<string, string>>;
}

interface RunningService {
  /** Without `/v1`. */
  readonly url: string;
  /** A token with every scope, where the service had no token and does not run in a pod. */
  readonly firstToken: string | undefined;
  /** Opens the dashboard signed in, where nobody is and the service does not run in a pod. */
  readonly signInLink: string | undefined;
  /** Stops workers and requests; jobs that were worked on go on at the next start. */
  close(): Promise<void>;
}

/** What uploads, results and new jobs leave free for records of what runs. */
const diskReserveBytes = 256 * 1024 ** 2;

/**
 * Joins the parts of the service and starts it.
 * @throws StartError
 */
export async function startService(
  settings: Settings,
  dependencies: ServiceDependencies,
): Promise<RunningService> {
  const { now, log } = dependencies;
  // In a cluster the workers' pods have the folders.
  if (settings.MOS_EXECUTOR === "local") await requireAllowedRoots(settings.MOS_ALLOWED_ROOTS);
  const files = await readFiles(settings);
  await using stack = new AsyncDisposableStack();
  const storage = stack.use(
    await openStorage(recordsPlace(settings), {
      now,
      log,
      maxWaitingJobs: settings.MOS_QUOTAS.waitingJobs,
      s3: await readS3Access(settings),
      reserveBytes: diskReserveBytes,
      retention: buildRetention(settings.MOS_KEEP_DAYS),
    }),
  );
  await offerFirstSignIn(settings.MOS_FIRST_SIGN_IN_FILE, storage.records, now());
  const about = await describeService(settings, now());
  // Only pods reach the bucket themselves.
  const isLocal = settings.MOS_EXECUTOR === "local";
  const blobs = isLocal ? { ...storage.blobs, direct: undefined } : storage.blobs;
  const parts = { ...dependencies, ...files, ...storage, blobs, about };
  const tracing = await openServiceTracing(settings, parts);
  if (tracing) stack.use(tracing);
  const { MOS_PORT: port, MOS_WORKER_PORT: workerPort } = settings;
  const server = stack.use(await startServer(settings, port, log));
  const workerServer =
    workerPort === undefined ? server : stack.use(await startServer(settings, workerPort, log));
  const { url: serviceUrl, answer: answerWorker } = workerServer;
  const joined = { settings, ...parts, tracing, serviceUrl, answerWorker };
  const monitoring = settings.MOS_HEALTH_PORT === undefined ? undefined : new Hono();
  const context = await joinParts(joined, stack);
  const workers = workerPort === undefined ? undefined : new Hono();
  const app = createApp(context, { monitoring, workers });
  if (monitoring) stack.use(await startMonitoring(settings, monitoring));
  server.serve((request, env) => app.fetch(request, { ...env }));
  if (workers) workerServer.serve((request, env) => workers.fetch(request, { ...env }));
  // Others read a pod's log, so that no token is printed there: an administrator creates the first.
  const isPod = settings.KUBERNETES_SERVICE_HOST !== undefined;
  const firstToken = isPod ? undefined : await createFirstToken(storage.records, now());
  const address = settings.MOS_PUBLIC_URL ?? server.url;
  const offersLink = !isPod && context.dashboard !== undefined;
  const signInLink = offersLink
    ? await createFirstLink(storage.records, address, now())
    : undefined;
  const running = stack.move();
  const close = async () => {
    const stopDelayMs = settings.MOS_STOP_DELAY_SECONDS * 1000;
    await Promise.all([server, workerServer].map((each) => each.drain(stopDelayMs)));
    await running.disposeAsync();
  };
  return { url: server.url, firstToken, signInLink, close };
}

/** A link where nobody is signed in; at later starts the command `sign-in` makes one. */
async function createFirstLink(
  records: Records,
  address: string,
  now: Date,
): Promise<string | undefined> {
  if (await records.sessions.hasAny()) return undefined;
  return signInAddress(address, await createSignInLink(records, "service", now));
}

/** Probes and metrics are answered there also while strangers take all connections of the other. */
async function startMonitoring(settings: Settings, monitoring: Hono): Promise<HttpServer> {
  const address = { host: settings.MOS_HOST, port: settings.MOS_HEALTH_PORT ?? 0 };
  return startHttpServer((request) => monitoring.fetch(request), address);
}

interface ServiceFiles {
  readonly targets: readonly Target[];
  readonly trust: TrustPolicy | undefined;
  readonly appOptions: GitHubAppOptions | undefined;
  readonly singleSignOn: SingleSignOn | undefined;
  readonly dashboard: Dashboard | undefined;
}

/** Without what is the operator's alone. */
async function readPublicTargets(file: string): Promise<Target[]> {
  return (await readTargets(file)).map((configured) => {
    const { pod: _, queue: __, ...target } = configured;
    return target;
  });
}

async function readFiles(settings: Settings): Promise<ServiceFiles> {
  const { MOS_TARGETS_FILE: targetsFile, MOS_TRUST_POLICY_FILE: trustFile } = settings;
  const singleSignOn = await readSingleSignOn(settings);
  return {
    targets: targetsFile === undefined ? builtinTargets : await readPublicTargets(targetsFile),
    trust: trustFile === undefined ? undefined : await readTrustPolicy(trustFile),
    appOptions: await readGitHubAppOptions(settings),
    singleSignOn: singleSignOn && createSingleSignOn(singleSignOn),
    dashboard: await loadDashboard(),
  };
}

/** Listens before the executor is there, since workers need the URL. */
async function startServer(settings: Settings, port: number, log: Log): Promise<HttpServer> {
  const headers = { "retry-after": "1" };
  const error = new ServiceError("unavailable", "The service is starting", { headers });
  const { MOS_HOST: host, MOS_TRUSTED_PROXIES: isTrustedProxy } = settings;
  const certificate = await readTlsCertificate(settings.MOS_TLS_DIR, log);
  const address = { host, port, isTrustedProxy, certificate };
  return startHttpServer((request) => problemResponse(error, request, log), address);
}

const trustPolicyChange = {
  project: defaultProject,
  action: "createProject",
  tokenId: null,
  tokenName: "trust policy",
};

const namespaceChange = { ...trustPolicyChange, tokenName: "namespaces" };

interface JoinedParts extends ServiceDependencies, ServiceFiles {
  readonly settings: Settings;
  readonly records: Records;
  readonly blobs: BlobStore;
  readonly requireSpace: () => Promise<void>;
  readonly readDiskSpace: DiskSpace["read"];
  readonly serviceUrl: string;
  readonly answerWorker: RequestListener;
  readonly about: ServerContext["about"];
  readonly tracing: ServerContext["tracing"];
}

/** Opens what works on jobs and what reports them; `stack` closes both. */
async function joinParts(
  { settings, trust, appOptions, ...parts }: JoinedParts,
  stack: AsyncDisposableStack,
): Promise<ServerContext> {
  const { records, log } = parts;
  const sources = stack.use(createModelSources(await readSourceCredentials(settings)));
  const metrics = createServiceMetrics(parts);
  stack.defer(() => metrics.close());
  const executor = await openExecutor(settings, { ...parts, registry: metrics.registry });
  stack.defer(() => executor.close());
  const submit: SubmitRerun = async (owner, order) => resubmitJobs(context, owner, order);
  const github = appOptions && openGitHubApp(appOptions, { records, submit, log });
  if (github) stack.defer(async () => github.close());
  const publicUrl = settings.MOS_PUBLIC_URL?.replace(/\/+$/, "");
  stack.use(
    startWebhookSender({
      ...parts,
      publicUrl,
      allowPrivateAddresses: settings.MOS_ALLOW_PRIVATE_ADDRESSES,
    }),
  );
  for (const { project } of trust?.policies ?? []) {
    await records.projects.ensure(project, trustPolicyChange);
  }
  const { MOS_NAMESPACES: namespaces } = settings;
  for (const project of namespaces === "all" ? [] : namespaces) {
    await records.projects.ensure(project, namespaceChange);
  }
  const exchangeToken = trust && createTokenExchange(parts, trust);
  const limits = {
    maxModelBytes: settings.MOS_MAX_MODEL_BYTES,
    allowedRoots: settings.MOS_ALLOWED_ROOTS,
    allowPrivateAddresses: settings.MOS_ALLOW_PRIVATE_ADDRESSES,
  };
  const quotas = createQuotas(settings, parts);
  const isTrustedProxy = settings.MOS_TRUSTED_PROXIES;
  const strangers = { isTrustedProxy, publicUrl, trust, exchangeToken, github };
  const work = { quotas, sources, executor, limits, metrics };
  const context: ServerContext = { ...parts, ...strangers, ...work };
  return context;
}
