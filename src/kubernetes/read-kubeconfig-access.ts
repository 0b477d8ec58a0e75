import type { RequestOptions } from "node:https";
import { type ClusterAccess, cacheHeaders } from "./cluster-access.ts";

/** Of a process outside the cluster. */
export interface KubeconfigSource {
  /** Path; without one, what `KUBECONFIG` names or `~/.kube/config`. */
  readonly kubeconfig: string | undefined;
  readonly context?: string;
}

export async function readKubeconfigAccess({
  kubeconfig,
  context,
}: KubeconfigSource): Promise<ClusterAccess> {
  // Its generated classes take 60 MB, which a pod need not pay.
  const { KubeConfig } = await import("@kubernetes/client-node");
  const config = new KubeConfig();
  if (kubeconfig === undefined) config.loadFromDefault();
  else config.loadFromFile(kubeconfig);
  if (context !== undefined) config.setCurrentContext(context);
  const cluster = config.getCurrentCluster();
  if (cluster === null)
    throw new TypeError(
      `The kubeconfig has no cluster for context "${config.getCurrentContext()}"`,
    );
  const options = await readRequestOptions(config);
  return {
    url: cluster.server,
    namespace: config.getContextObject(config.getCurrentContext())?.namespace ?? "default",
    tls: tlsOptions(options),
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

/** The client reads files whole: each option is one value or none. */
function tlsOptions(options: RequestOptions): ClusterAccess["tls"] {
  const { ca, cert, key, servername, rejectUnauthorized } = options;
  return {
    ...(isText(ca) && { ca }),
    ...(isText(cert) && { cert }),
    ...(isText(key) && { key }),
    ...(servername !== undefined && { servername }),
    ...(rejectUnauthorized !== undefined && { rejectUnauthorized }),
  };
}

function isText(value: unknown): value is string | Buffer {
  return typeof value === "string" || Buffer.isBuffer(value);
}

function authorizationHeaders({ headers, auth }: RequestOptions): Record<string, string> {
  const basic = auth ? { authorization: `Basic ${Buffer.from(auth).toString("base64")}` } : {};
  return {
    ...basic,
    ...Object.fromEntries(
      Object.entries(headers ?? {}).map(([name, value]) => [name, String(value)]),
    ),
  };
}
