import { z } from "zod";

/** Fields of every spec that may change after its creation. */
export const resourceControls = {
  cancel: z.boolean().default(false).describe("Stop the work at once. It cannot be taken back."),
  suspend: z
    .boolean()
    .default(false)
    .describe("Suspend the work: pods are stopped, and are started again when it is false."),
  ttlSecondsAfterFinished: z
    .int()
    .min(0)
    .max(31_536_000)
    .optional()
    .describe(
      "Seconds after the end at which the resource is deleted; without it, it is kept. " +
        "The history stays.",
    ),
};

/** All other fields of a CompressionJob are immutable. */
export const mutableJobFields: readonly string[] = Object.keys(resourceControls);

/** All other fields of a Batch are immutable. */
export const mutableBatchFields: readonly string[] = [...mutableJobFields, "parallelism"];
