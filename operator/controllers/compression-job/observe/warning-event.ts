import type { ObservedEvent } from "../../../../src/resources/observed-resources.ts";
import type { Stored } from "../../../../src/kubernetes/resources.ts";

/** Index of warnings by the UID of the object that they are about. */
export const involvedObjectIndex = "about";

/**
 * Selects warnings of the cluster among events: what the operator itself says about its resources is none, and what a pod without a
 * node waits for is in its status.
 */
export const warningFieldSelector =
  "type=Warning,reason!=FailedScheduling,involvedObject.kind!=CompressionJob,involvedObject.kind!=Batch";

/** What the cluster says about a Job or a pod of which something is wrong. */
export interface WarningEvent {
  readonly message: string;
  /** When it was last said, milliseconds since 1970. */
  readonly at: number;
}

export function toWarningEvent({
  metadata,
  message = "",
  lastTimestamp,
  eventTime,
}: Stored<ObservedEvent>): WarningEvent {
  return { message, at: Date.parse(lastTimestamp ?? eventTime ?? metadata.creationTimestamp) };
}
