import type { MergePatch, PatchOptions } from "../../../../src/kubernetes/kubernetes-client.ts";
import { ignoreNotFound } from "../../../../src/kubernetes/kubernetes-error.ts";
import {
  type CompressionJobObject,
  compressionJobs,
} from "../../../../src/resources/custom-resources.ts";
import type { ActionContext } from "./action-context.ts";

/** Fails with a conflict where the resource has changed since it was observed. */
export async function patchCompressionJob(
  context: ActionContext,
  patch: MergePatch<CompressionJobObject>,
  options: PatchOptions = {},
): Promise<"stale" | undefined> {
  const { client, run } = context;
  const { name, resourceVersion } = context.resource.metadata;
  const call = client.patch<CompressionJobObject>(compressionJobs, name, patch, {
    ...options,
    resourceVersion,
  });
  const changed = await ignoreNotFound(call);
  if (changed === undefined) return "stale";
  context.resource = changed;
  run.expectWrite(context.compressionJobs, changed);
  return undefined;
}
