import type { KubernetesClient } from "../src/kubernetes/kubernetes-client.ts";
import { resources } from "../src/kubernetes/resources.ts";
import type { Log } from "../src/log/json-log.ts";
import { releaseCompressionJobs } from "./release-compression-jobs.ts";

/**
 * Releases all CompressionJobs if the namespace is being deleted, which ends this process.
 * Kubernetes deletes the pods of a namespace before anything else, and waits for the end of this
 * one.
 */
export async function releaseFromDeletedNamespace(
  client: KubernetesClient,
  log: Log,
): Promise<void> {
  try {
    const { metadata } = await client.get(resources.namespaces, client.namespace);
    if (metadata.deletionTimestamp === undefined) return;
    const released = await releaseCompressionJobs(client);
    log("info", "The namespace is being deleted: CompressionJobs are released", { released });
  } catch (error) {
    log("error", "Cannot release the CompressionJobs of a namespace that may be deleted", {
      error,
    });
  }
}
