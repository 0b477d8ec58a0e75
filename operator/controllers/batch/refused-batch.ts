import type { EventReason } from "../../../src/contract/custom-resources/event-reasons.ts";
import { describeBatchExcess } from "../../../src/contract/jobs/jobs-size.ts";
import type { BatchObject } from "../../../src/resources/custom-resources.ts";

/** Why no job of a batch is created. */
export interface BatchRefusal {
  readonly reason: EventReason;
  readonly message: string;
}

/** A small batch can make many large CompressionJobs, for all of which the store has to have room. */
export function findBatchRefusal({ spec }: BatchObject): BatchRefusal | undefined {
  const excess = describeBatchExcess(spec);
  if (excess === undefined) return undefined;
  const message = `spec.${excess.largest}: ${excess.message}; create several Batches`;
  return { reason: "BatchTooLarge", message };
}
