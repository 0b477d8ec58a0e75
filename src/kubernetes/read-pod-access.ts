import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type ClusterAccess, cacheHeaders } from "./cluster-access.ts";

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

export async function readPodAccess({
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
