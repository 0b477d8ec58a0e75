import { recordFinalizer } from "../../../../src/contract/resource-labels.ts";
import type { Action } from "../decide/decision.ts";
import type { ActionContext } from "./action-context.ts";
import { patchCompressionJob } from "./patch-compression-job.ts";

export async function setFinalizer(
  context: ActionContext,
  { present }: Action & { type: "setFinalizer" },
): Promise<"stale" | undefined> {
  const { finalizers = [] } = context.resource.metadata;
  const others = finalizers.filter((finalizer) => finalizer !== recordFinalizer);
  return patchCompressionJob(context, {
    metadata: { finalizers: present ? [...others, recordFinalizer] : others },
  });
}
