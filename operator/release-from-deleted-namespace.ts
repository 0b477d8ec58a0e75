import { findNamespacePhase } from "../src/kubernetes/find-namespace-phase.ts";
import type { KubernetesClient } from "../src/kubernetes/kubernetes-client.ts";
import type { Log } from "../src/log/json-log.ts";
import { releaseCompressionJobs } from "./release-compression-jobs.ts";

/**
 * Releases all CompressionJobs if the operator's namespace is being deleted, which ends this one.
 * Kubernetes deletes the pods of a namespace before anything else, and waits for their end.
 */
export async function releaseFromDeletedNamespace(
  client: KubernetesClient,
  scopes: readonly KubernetesClient[],
  log: Log,
): Promise<void> {
  try {
    if ((await findNamespacePhase(client)) === "active") return;
    const released = await releaseCompressionJobs(scopes);
    log("info", "The namespace is being deleted: CompressionJobs are released", { released });
  } catch (error) {
    log("error", "Cannot release the CompressionJobs of a namespace that may be deleted", {
      error,
    });
  }
}
