import { readFile } from "node:fs/promises";
import type { RequestOptions } from "node:https";
import { join } from "node:path";
import { cacheHeaders, type ClusterAccess } from "./cluster-access.ts";
import { ClusterClient } from "./cluster-client.ts";
import type { KubernetesClient } from "./kubernetes-client.ts";
import { type ClusterCall, createTransport } from "./transport.ts";

export type ClusterSource = PodSource | KubeconfigSource;

interface ConnectOptions {
  /** By default the pod's namespace, or that of the kubeconfig's context. */
  readonly namespace?: string | undefined;
  /** Names the component in the audit log, and as the manager of the fields that it writes. */
  readonly userAgent?: string;
  /** Called after every HTTP request. */
  readonly onCall?: (call: ClusterCall) => void;
}

/** Reads the credentials. The first call opens the connection. */
export async function connectCluster(
  source: ClusterSource,
  options: ConnectOptions = {},
): Promise<KubernetesClient> {
  const access = await ("host" in source ? readPodAccess(source) : readKubeconfigAccess(source));
  const { userAgent = "model-optimization", onCall = () => {} } = options;
  const transport = createTransport(access, { userAgent, onCall });
  return new ClusterClient(transport, options.namespace ?? access.namespace);
}

/** Access from outside the cluster. */
interface KubeconfigSource {
  /** Path; undefined for the file that `KUBECONFIG` names, or `~/.kube/config`. */
  readonly kubeconfig: string | undefined;
}

async function readKubeconfigAccess({ kubeconfig }: KubeconfigSource): Promise<ClusterAccess> {
  // Imported on demand: its generated classes take 60 MB, which a pod does not need.
  const { KubeConfig } = await import("@kubernetes/client-node");
  const config = new KubeConfig();
  if (kubeconfig === undefined) config.loadFromDefault();
  else config.loadFromFile(kubeconfig);
  const currentContext = config.getCurrentContext();
  const cluster = config.getCurrentCluster();
  if (cluster === null) {
    throw new TypeError(`The kubeconfig has no cluster for context "${currentContext}"`);
  }
  return {
    url: cluster.server,
    namespace: config.getContextObject(currentContext)?.namespace ?? "default",
    tls: tlsOptions(await readRequestOptions(config)),
    authorize: cacheHeaders(async () => authorizationHeaders(await readRequestOptions(config))),
  };
}

async function readRequestOptions(config: {
  applyToHTTPSOptions(options: RequestOptions): Promise<void>;
}) {
  const options: RequestOptions = {};
  await config.applyToHTTPSOptions(options);
  return options;
}

function tlsOptions(options: RequestOptions): ClusterAccess["tls"] {
  const { ca, cert, key, servername, rejectUnauthorized } = options;
  const tls = { ca: singleText(ca), cert: singleText(cert), key: singleText(key), servername };
  // Set to undefined, it would replace the default of Node.
  return rejectUnauthorized === undefined ? tls : { ...tls, rejectUnauthorized };
}

/** The client reads each file whole, so an option has one value or none. */
function singleText(value: unknown): string | Buffer | undefined {
  return typeof value === "string" || Buffer.isBuffer(value) ? value : undefined;
}

function authorizationHeaders({ headers, auth }: RequestOptions): Record<string, string> {
  const basic = auth ? { authorization: `Basic ${Buffer.from(auth).toString("base64")}` } : {};
  const others = Object.entries(headers ?? {}).map(([name, value]) => [name, String(value)]);
  return { ...basic, ...Object.fromEntries(others) };
}

/** Access from a pod, with the token of its service account, which the kubelet renews. */
export interface PodSource {
  /** `KUBERNETES_SERVICE_HOST` */
  readonly host: string;
  /** `KUBERNETES_SERVICE_PORT` */
  readonly port: string;
  /** Mount path of the service account. */
  readonly directory?: string;
}

const mountedServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount";

async function readPodAccess({
  host,
  port,
  directory = mountedServiceAccount,
}: PodSource): Promise<ClusterAccess> {
  const [ca, namespace] = await Promise.all([
    readFile(join(directory, "ca.crt")),
    readFile(join(directory, "namespace"), "utf8"),
  ]);
  return {
    url: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
    namespace: namespace.trim(),
    tls: { ca },
    authorize: cacheHeaders(async () => {
      const token = await readFile(join(directory, "token"), "utf8");
      return { authorization: `Bearer ${token.trim()}` };
    }),
  };
}
