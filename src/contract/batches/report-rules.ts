import { z } from "zod";
import { type FailOn, failOnTable } from "./action.ts";
import type { BatchRequest } from "./batch.ts";
import { gateName, type GateName } from "../jobs/gate-table.ts";
import { gateLimits, type GateLimits } from "../jobs/gate.ts";
import type { FieldError } from "../errors.ts";
import { textLimits } from "../limits.ts";
import { isGlobMatch } from "../text/glob.ts";
import { oneOrMore } from "../text/one-or-more.ts";

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

/** What a batch asks for, as far as it is ruled. */
export type AskedReport = Pick<BatchRequest, "gates" | "suite" | "revision"> & {
  readonly report: NonNullable<BatchRequest["report"]>;
};

/** From what fails a check run most easily to what never fails one. */
const fromStrictest: readonly FailOn[] = ["warnings", "gates", "jobs", "nothing"];

/**
 * What a workflow's request chooses that its trust policy does not let it choose.
 * @param baseRef the branch that has to be compared with where suites are ruled; null for any
 */
export function checkReportRules(
  rules: ReportRules,
  asked: AskedReport,
  baseRef: string | null,
): FieldError[] {
  const { checkName, failOn } = asked.report.github;
  const fields: FieldError[] = [];
  if (!rules.checkNames.some((pattern) => isGlobMatch(pattern, checkName))) {
    const message = `Is "${checkName}", and the trust policy allows no check of this name`;
    fields.push({ pointer: "/report/github/checkName", message });
  }
  if (fromStrictest.indexOf(failOn) > fromStrictest.indexOf(rules.failOn)) {
    const message = `Is "${failOn}", and the trust policy demands at least "${rules.failOn}"`;
    fields.push({ pointer: "/report/github/failOn", message });
  }
  return [...fields, ...gateErrors(rules.gates, asked.gates), ...baseErrors(rules, asked, baseRef)];
}

/** Gates of a request with those of a trust policy, which count where both have one. */
export function mergeGates(asked: GateLimits = {}, rules: GateLimits): GateLimits {
  const warnGates = [...new Set([...(asked.warnGates ?? []), ...(rules.warnGates ?? [])])];
  return { ...asked, ...rules, warnGates };
}

function baseErrors(
  { suites }: ReportRules,
  { suite = "", revision }: AskedReport,
  baseRef: string | null,
): FieldError[] {
  if (suites === undefined) return [];
  const fields: FieldError[] = [];
  if (!suites.some((pattern) => isGlobMatch(pattern, suite))) {
    const message = `Is "${suite}", and the trust policy lets only its own suites be compared with`;
    fields.push({ pointer: "/suite", message });
  }
  const branch = revision?.base?.branch ?? "";
  if (baseRef !== null && branch !== baseRef) {
    const message = `Is "${branch}", and must be "${baseRef}", which the pull request changes`;
    fields.push({ pointer: "/revision/base/branch", message });
  }
  return fields;
}

function gateErrors(rules: GateLimits, asked: GateLimits = {}): FieldError[] {
  return gateName.options.flatMap((gate) => {
    const limit = rules[gate];
    if (limit === undefined) return [];
    if (asked[gate] !== undefined && asked[gate] !== limit) {
      const message = `Is ${asked[gate]}, and the trust policy demands ${limit}`;
      return [{ pointer: `/gates/${gate}`, message }];
    }
    if (!isWarning(asked, gate) || isWarning(rules, gate)) return [];
    const message = `Has "${gate}", which the trust policy does not let only warn`;
    return [{ pointer: "/gates/warnGates", message }];
  });
}

function isWarning({ warnGates = [] }: GateLimits, gate: GateName): boolean {
  return warnGates.includes(gate);
}
