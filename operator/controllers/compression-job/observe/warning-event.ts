import type { ObservedEvent } from "../../../../src/resources/observed-resources.ts";
import type { Stored } from "../../../../src/kubernetes/resources.ts";

/** Index of warnings by the UID of the involved object. */
export const involvedObjectIndex = "about";

/**
 * Selects the cluster's warnings among events, without those of the operator about its own
 * resources. Why a pod has no node is in the pod's status.
 */
export const warningFieldSelector = [
  "type=Warning",
  "reason!=FailedScheduling",
  "involvedObject.kind!=CompressionJob",
  "involvedObject.kind!=Batch",
].join(",");

/** A warning about a worker Job or a pod. */
export interface WarningEvent {
  readonly message: string;
  /** When it was last repeated, milliseconds since 1970. */
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
