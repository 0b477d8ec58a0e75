import { recordFinalizer } from "../src/contract/custom-resources/resource-labels.ts";
import type { KubernetesClient } from "../src/kubernetes/kubernetes-client.ts";
import { ignoreNotFound } from "../src/kubernetes/kubernetes-error.ts";
import type { Stored } from "../src/kubernetes/resources.ts";
import { type CompressionJobObject, compressionJobs } from "../src/resources/custom-resources.ts";

/** Ten thousand resources are released within the grace period of the operator's pod. */
const concurrentPatches = 16;

/**
 * Removes the finalizer of all CompressionJobs that the clients list, where no operator will do so
 * any more. Returns their number.
 */
export async function releaseCompressionJobs(
  clients: readonly KubernetesClient[],
): Promise<number> {
  const kept = listKeptJobs(clients);
  const counts = Array.from({ length: concurrentPatches }, async () => {
    let count = 0;
    for await (const { client, job } of kept) count += await releaseCompressionJob(client, job);
    return count;
  });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}

async function* listKeptJobs(clients: readonly KubernetesClient[]) {
  for (const scope of clients) {
    for await (const { items } of scope.list(compressionJobs)) {
      for (const job of items) {
        const client = scope.inNamespace(job.metadata.namespace);
        if (job.metadata.finalizers?.includes(recordFinalizer)) yield { client, job };
      }
    }
  }
}

async function releaseCompressionJob(
  client: KubernetesClient,
  { metadata: { name, finalizers = [] } }: Stored<CompressionJobObject>,
): Promise<number> {
  const others = finalizers.filter((finalizer) => finalizer !== recordFinalizer);
  const patch = { metadata: { finalizers: others } };
  const released = await ignoreNotFound(client.patch(compressionJobs, name, patch));
  return released === undefined ? 0 : 1;
}
