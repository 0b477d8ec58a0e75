import { recordFinalizer } from "../../../../src/contract/custom-resources/resource-labels.ts";
import type { ActionContext } from "./action-context.ts";
import { patchCompressionJob } from "./patch-compression-job.ts";

export async function setFinalizer(
  context: ActionContext,
  { present }: { readonly present: boolean },
): Promise<"stale" | undefined> {
  const { finalizers = [] } = context.resource.metadata;
  const others = finalizers.filter((finalizer) => finalizer !== recordFinalizer);
  return patchCompressionJob(context, {
    metadata: { finalizers: present ? [...others, recordFinalizer] : others },
  });
}
