import { z } from "zod";
import { textLimits } from "../limits.ts";

/** API group of the custom resources, and prefix of the labels of what belongs to them. */
export const apiGroup = "modeloptimization.dev";
export const apiVersion = `${apiGroup}/v1`;

/** Bounds of lists in a status, so that it stays under 64 KiB. */
export const statusLimits = {
  artifacts: 35,
  warnings: 16,
  transitions: 8,
  /** Of one attempt: waiting, two steps of work, a cancellation, and the end. */
  reportedTransitions: 5,
  gates: 16,
  failures: 20,
} as const;

export const statusMessage = z.string().max(textLimits.statusMessage);

/** Of the statuses of both kinds. */
export const observedGeneration = z
  .int()
  .min(0)
  .optional()
  .describe("`metadata.generation` of the spec that the status is about.");

/** Times that the statuses of both kinds have. */
export const workTimes = {
  startedAt: z.iso.datetime().optional().describe("When the work began."),
  finishedAt: z.iso.datetime().optional().describe("When the work ended, however it did."),
};
