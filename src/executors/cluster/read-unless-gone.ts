import { findNamespacePhase } from "../../kubernetes/find-namespace-phase.ts";
import type { KubernetesClient } from "../../kubernetes/kubernetes-client.ts";
import { isForbidden } from "../../kubernetes/kubernetes-error.ts";

/** Undefined where the client's namespace is gone, and with it the right to read. */
export async function readUnlessGone<T>(
  client: KubernetesClient,
  read: Promise<T>,
): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    if (isForbidden(error) && (await findNamespacePhase(client)) === "gone") return undefined;
    throw error;
  }
}
