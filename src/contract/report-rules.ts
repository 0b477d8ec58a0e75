import { z } from "zod";
import { type FailOn, failOnTable } from "./action.ts";
import { gateLimits } from "./gate.ts";
import { textLimits } from "./limits.ts";
import { oneOrMore } from "./one-or-more.ts";

/**
 * What check runs of workflows may be, as a trust policy says it: a pull request can change
 * everything that its own workflow asks for.
 */
export const reportRules = z.strictObject({
  checkNames: oneOrMore(z.string().min(1).max(textLimits.name)),
  failOn: z.enum(Object.keys(failOnTable) as [FailOn, ...FailOn[]]).default("gates"),
  gates: gateLimits.default({}),
  /** Suites whose baselines count; a pull request's are those of the branch that it changes. */
  suites: oneOrMore(z.string().min(1).max(textLimits.name)).optional(),
  acceptBaselines: z.boolean().default(false),
});
export type ReportRules = z.infer<typeof reportRules>;
