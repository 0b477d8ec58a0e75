import type { RequestListener } from "node:http";
import { Hono } from "hono";
import type { SingleSignOn } from "../auth/single-sign-on.ts";
import { ServiceError } from "../contract/errors.ts";
import { defaultProject } from "../contract/project.ts";
import { builtinTargets, type Target } from "../contract/jobs/target.ts";
import type { TrustPolicy } from "../contract/people/trust-policy.ts";
import { isReading } from "../contract/routes/route.ts";
import type { GitHubAppOptions } from "../github-app/open-github-app.ts";
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
import { beginWithRoom } from "./begin-with-room.ts";
import { describeService } from "./describe-service.ts";
import { openExecutor } from "./open-executor.ts";
import { createReadOnlyExecutor } from "./read-only-executor.ts";
import { openStorage } from "./storage-folder/open-storage.ts";
import { readGitHubAppOptions } from "./settings/read-github-app-options.ts";
import { readSingleSignOn } from "./settings/read-single-sign-on.ts";
import { readS3Access, readSourceCredentials } from "./settings/read-credentials.ts";
import { openServiceTracing } from "./open-service-tracing.ts";
import { readTrustPolicy, requireOwnIssuers } from "./settings/read-trust-policy.ts";
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
  const about = await describeService(settings, now());
  // Only pods reach the bucket themselves.
  const isLocal = settings.MOS_EXECUTOR === "local";
  const blobs = isLocal ? { ...storage.blobs, direct: undefined } : storage.blobs;
  const parts = { ...dependencies, ...files, ...storage, blobs, about };
  const tracing = await openServiceTracing(settings, parts);
  if (tracing) stack.use(tracing);
  const servers = await startServers(settings, stack, log);
  const { url: serviceUrl, answer: answerWorker } = servers.workers;
  const joined = { settings, ...parts, tracing, serviceUrl, answerWorker };
  const work = stack.use(new AsyncDisposableStack());
  const begin = async () => {
    await using begun = new AsyncDisposableStack();
    const context = await beginWork(joined, begun);
    const first = await createFirstAccess(settings, storage.records, {
      address: settings.MOS_PUBLIC_URL ?? servers.public.url,
      hasDashboard: context.dashboard !== undefined,
      now: now(),
    });
    serveApp(servers, context);
    work.use(begun.move());
    return first;
  };
  const serveReads = async (reading: AsyncDisposableStack) => {
    const open = async () => createReadOnlyExecutor(storage.records);
    serveApp(servers, await joinParts(joined, reading, open), refuseWrites);
  };
  const first = await beginWithRoom(begin, serveReads, { stack, log });
  const running = stack.move();
  const close = async () => {
    const stopDelayMs = settings.MOS_STOP_DELAY_SECONDS * 1000;
    const drained = [servers.public, servers.workers].map((each) => each.drain(stopDelayMs));
    await Promise.all(drained);
    await running.disposeAsync();
  };
  return { url: servers.public.url, ...noAccess, ...first, close };
}

type FirstAccess = Pick<RunningService, "firstToken" | "signInLink">;

const noAccess: FirstAccess = { firstToken: undefined, signInLink: undefined };

/** Others read a pod's log, so that nothing is printed there: an administrator creates the first. */
async function createFirstAccess(
  { KUBERNETES_SERVICE_HOST: pod }: Settings,
  records: Records,
  options: { readonly address: string; readonly hasDashboard: boolean; readonly now: Date },
): Promise<FirstAccess> {
  if (pod !== undefined) return noAccess;
  const { address, hasDashboard, now } = options;
  const firstToken = await createFirstToken(records, now);
  const signInLink = hasDashboard ? await createFirstLink(records, address, now) : undefined;
  return { firstToken, signInLink };
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

interface ServiceFiles {
  readonly targets: readonly Target[];
  readonly trust: TrustPolicy | undefined;
  readonly appOptions: GitHubAppOptions | undefined;
  readonly singleSignOn: SingleSignOn | undefined;
  readonly dashboard: Dashboard | undefined;
}

/** Without what is only the operator's. */
async function readPublicTargets(file: string): Promise<Target[]> {
  return (await readTargets(file)).map((configured) => {
    const { pod: _, queue: __, ...target } = configured;
    return target;
  });
}

/** Modules of what few installations have are loaded only where they have it. */
async function readFiles(settings: Settings): Promise<ServiceFiles> {
  const { MOS_TARGETS_FILE: targetsFile, MOS_TRUST_POLICY_FILE: trustFile } = settings;
  const singleSignOn = await readSingleSignOn(settings);
  const trust = trustFile === undefined ? undefined : await readTrustPolicy(trustFile);
  const appOptions = await readGitHubAppOptions(settings);
  if (trust && appOptions) requireOwnIssuers(trust, appOptions.apiUrl);
  return {
    targets: targetsFile === undefined ? builtinTargets : await readPublicTargets(targetsFile),
    trust,
    appOptions,
    singleSignOn:
      singleSignOn && (await import("../auth/single-sign-on.ts")).createSingleSignOn(singleSignOn),
    dashboard: await loadDashboard(),
  };
}

interface Servers {
  readonly public: HttpServer;
  /** The same one where workers have no port of their own. */
  readonly workers: HttpServer;
  /** Answers probes and metrics also while strangers take all connections of the public one. */
  readonly monitoring: HttpServer | undefined;
}

/** They listen before the executor is there, since workers need the URL. */
async function startServers(
  settings: Settings,
  stack: AsyncDisposableStack,
  log: Log,
): Promise<Servers> {
  const { MOS_HOST: host, MOS_TRUSTED_PROXIES: isTrustedProxy } = settings;
  const { MOS_PORT: port, MOS_WORKER_PORT: workerPort, MOS_HEALTH_PORT: healthPort } = settings;
  const headers = { "retry-after": "1" };
  const error = new ServiceError("unavailable", "The service is starting", { headers });
  const answer = (request: Request) => problemResponse(error, request, log);
  const start = async (address: Parameters<typeof startHttpServer>[1]) =>
    stack.use(await startHttpServer(answer, address));
  const startSecure = async (at: number) => {
    const certificate = await readTlsCertificate(settings.MOS_TLS_DIR, log);
    return start({ host, port: at, isTrustedProxy, certificate });
  };
  const server = await startSecure(port);
  return {
    public: server,
    workers: workerPort === undefined ? server : await startSecure(workerPort),
    monitoring: healthPort === undefined ? undefined : await start({ host, port: healthPort }),
  };
}

/** Answers a request in place of the app, where it does. */
type Refusal = (request: Request, log: Log) => Response | undefined;

function refuseWrites(request: Request, log: Log): Response | undefined {
  if (isReading(request)) return undefined;
  const message = "The disk of the service is full: it only reads until there is room";
  const headers = { "retry-after": "60" };
  return problemResponse(new ServiceError("storage_full", message, { headers }), request, log);
}

function serveApp(servers: Servers, context: ServerContext, refuse: Refusal = () => undefined) {
  const monitoring = servers.monitoring && new Hono();
  const workers = servers.workers === servers.public ? undefined : new Hono();
  const app = createApp(context, { monitoring, workers });
  const serve = (server: HttpServer, hono: Hono) =>
    server.serve((request, env) => refuse(request, context.log) ?? hono.fetch(request, { ...env }));
  serve(servers.public, app);
  if (workers) serve(servers.workers, workers);
  if (servers.monitoring && monitoring) serve(servers.monitoring, monitoring);
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

/** Writes what the settings say, and opens what works on jobs and what reports them. */
async function beginWork(joined: JoinedParts, stack: AsyncDisposableStack): Promise<ServerContext> {
  const { settings, trust, appOptions, records, log, now } = joined;
  await offerFirstSignIn(settings.MOS_FIRST_SIGN_IN_FILE, records, now());
  for (const { project } of trust?.policies ?? []) {
    await records.projects.ensure(project, trustPolicyChange);
  }
  const { MOS_NAMESPACES: namespaces } = settings;
  for (const project of namespaces === "all" ? [] : namespaces) {
    await records.projects.ensure(project, namespaceChange);
  }
  const context = await joinParts(joined, stack, openExecutor);
  const submit: SubmitRerun = async (owner, order) => resubmitJobs(context, owner, order);
  const github =
    appOptions &&
    (await import("../github-app/open-github-app.ts")).openGitHubApp(appOptions, {
      records,
      submit,
      log,
    });
  if (github) stack.defer(async () => github.close());
  stack.use(
    startWebhookSender({
      ...joined,
      publicUrl: context.publicUrl,
      allowPrivateAddresses: settings.MOS_ALLOW_PRIVATE_ADDRESSES,
    }),
  );
  return { ...context, github };
}

/** Opens what answers requests, with an executor; `stack` closes it. */
async function joinParts(
  { settings, trust, ...parts }: JoinedParts,
  stack: AsyncDisposableStack,
  open: typeof openExecutor,
): Promise<ServerContext> {
  const sources = stack.use(createModelSources(await readSourceCredentials(settings)));
  const metrics = createServiceMetrics(parts);
  stack.defer(() => metrics.close());
  const executor = await open(settings, { ...parts, registry: metrics.registry });
  stack.defer(() => executor.close());
  const { MOS_PUBLIC_URL: publicUrl } = settings;
  const exchangeToken =
    trust && (await import("../auth/token-exchange.ts")).createTokenExchange(parts, trust);
  const limits = {
    maxModelBytes: settings.MOS_MAX_MODEL_BYTES,
    allowedRoots: settings.MOS_ALLOWED_ROOTS,
    allowPrivateAddresses: settings.MOS_ALLOW_PRIVATE_ADDRESSES,
  };
  const quotas = createQuotas(settings, parts);
  const isTrustedProxy = settings.MOS_TRUSTED_PROXIES;
  const strangers = { isTrustedProxy, publicUrl, trust, exchangeToken, github: undefined };
  return { ...parts, ...strangers, quotas, sources, executor, limits, metrics };
}
