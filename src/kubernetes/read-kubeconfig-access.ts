import type { RequestOptions } from "node:https";
import { type ClusterAccess, cacheHeaders } from "./cluster-access.ts";

/** Access from outside the cluster. */
export interface KubeconfigSource {
  /** Path; undefined for the file that `KUBECONFIG` names, or `~/.kube/config`. */
  readonly kubeconfig: string | undefined;
  readonly context?: string;
}

export async function readKubeconfigAccess({
  kubeconfig,
  context,
}: KubeconfigSource): Promise<ClusterAccess> {
  // Imported on demand: its generated classes take 60 MB, which a pod does not need.
  const { KubeConfig } = await import("@kubernetes/client-node");
  const config = new KubeConfig();
  if (kubeconfig === undefined) config.loadFromDefault();
  else config.loadFromFile(kubeconfig);
  if (context !== undefined) config.setCurrentContext(context);
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
