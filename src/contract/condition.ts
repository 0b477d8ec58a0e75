import { z } from "zod";
import { textLimits } from "./limits.ts";

const maxConditions = 8;

/** A condition as Kubernetes' API conventions define it. */
const condition = z.object({
  type: z.string().min(1).max(64),
  status: z.enum(["True", "False", "Unknown"]),
  observedGeneration: z.int().min(0).optional(),
  lastTransitionTime: z.iso.datetime(),
  reason: z
    .string()
    .min(1)
    .max(textLimits.reason)
    .regex(/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/),
  message: z.string().max(textLimits.statusMessage),
});
export type Condition = z.infer<typeof condition>;

/** Conditions of a status, by their types. */
export const conditions = z
  .array(condition)
  .max(maxConditions)
  .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] });

/** Types of conditions. What each means is described at the status that has it. */
export const conditionTypes = {
  scheduled: "Scheduled",
  finished: "Finished",
  recorded: "Recorded",
  suspended: "Suspended",
} as const;
export type ConditionType = (typeof conditionTypes)[keyof typeof conditionTypes];
