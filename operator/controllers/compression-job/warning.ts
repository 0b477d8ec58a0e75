import type { ObservedEvent } from "../../../src/kubernetes/observed-resources.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";

/** Index of warnings by the UID of the object that they are about. */
export const aboutIndex = "about";

/**
 * Selects warnings of the cluster among events: what the operator itself says about its resources is none, and what a pod without a
 * node waits for is in its status.
 */
export const clusterWarnings =
  "type=Warning,reason!=FailedScheduling,involvedObject.kind!=CompressionJob,involvedObject.kind!=Batch";

/** What the cluster says about a Job or a pod of which something is wrong. */
export interface Warning {
  readonly message: string;
  /** When it was last said, milliseconds since 1970. */
  readonly at: number;
}

export function readWarning({ metadata, message = "", lastTimestamp, eventTime }: Stored<ObservedEvent>): Warning {
  return { message, at: Date.parse(lastTimestamp ?? eventTime ?? metadata.creationTimestamp) };
}
