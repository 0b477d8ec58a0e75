import { findNamespacePhase } from "../../../../src/kubernetes/find-namespace-phase.ts";
import type { ActionContext } from "./action-context.ts";

/**
 * Whether the resource is being deleted with its namespace, whose pods have ended before. Nobody
 * can wait then for the job's end: the rights in the namespace go with it. Of the operator's own
 * namespace all resources are released when the operator ends.
 */
export async function goesWithNamespace(
  { client, resource }: ActionContext,
  ownNamespace: string,
): Promise<boolean> {
  if (resource.metadata.deletionTimestamp === undefined) return false;
  if (client.namespace === ownNamespace) return false;
  return (await findNamespacePhase(client)) !== "active";
}
