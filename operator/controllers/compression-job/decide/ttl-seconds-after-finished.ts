import type { CompressionJob } from "../../../../src/contract/compression-job.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { type Decision, noActions, requeueAt } from "./decision.ts";

/** `spec.ttlSecondsAfterFinished`: deletes the resource so long after its end. */
export function deleteAfterTtl({ resource, now }: ObservedState): Decision {
  const { metadata, spec } = resource;
  if (spec.ttlSecondsAfterFinished === undefined || metadata.deletionTimestamp !== undefined) {
    return noActions;
  }
  const expiry = jobEndTime(resource) + spec.ttlSecondsAfterFinished * 1000;
  return expiry <= now ? { actions: [{ type: "deleteResource" }] } : requeueAt(expiry);
}

/** When a job ended that is in a terminal status, milliseconds since 1970. */
export function jobEndTime({ metadata, status }: CompressionJob): number {
  return Date.parse(status.finishedAt ?? metadata.creationTimestamp);
}
