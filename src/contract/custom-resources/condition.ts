import { z } from "zod";
import { observedGeneration } from "./api-group.ts";
import { textLimits } from "../limits.ts";

const maxConditions = 8;

/** A condition as Kubernetes' API conventions define it. */
const condition = z.object({
  type: z.string().min(1).max(64).describe("What the condition is about."),
  status: z.enum(["True", "False", "Unknown"]).describe("Whether the condition holds."),
  observedGeneration,
  lastTransitionTime: z.iso.datetime().describe("When `status` last changed."),
  reason: z
    .string()
    .min(1)
    .max(textLimits.reason)
    .regex(/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/)
    .describe("Stable code that says why."),
  message: z.string().max(textLimits.statusMessage).describe("The same for people."),
});
export type Condition = z.infer<typeof condition>;

/** `Ready` of a resource that no controller has seen yet, which makes it a resource in progress. */
export const unseenConditions = [
  {
    type: "Ready",
    status: "Unknown",
    reason: "Pending",
    message: "Waiting for the operator",
    lastTransitionTime: "1970-01-01T00:00:00Z",
  },
] as const satisfies readonly Condition[];

/** What conditions of jobs and batches mean to tools that wait for any resource. */
export const outcomeConditions = {
  Ready: "true once it is Completed, and false before and where it never will be",
  Complete: "it is Completed",
  Failed: "it has failed",
  Stalled: "it has failed or was cancelled, so nothing more will come of it",
} satisfies Partial<Record<string, string>>;

/** Conditions of a status, by their types. */
export const conditions = z
  .array(condition)
  .max(maxConditions)
  .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] });

/** Types of conditions. What each means is described at the status that has it. */
export const conditionTypes = {
  scheduled: "Scheduled",
  finished: "Finished",
  suspended: "Suspended",
  ready: "Ready",
  complete: "Complete",
  failed: "Failed",
  stalled: "Stalled",
} as const;
export type ConditionType = (typeof conditionTypes)[keyof typeof conditionTypes];
