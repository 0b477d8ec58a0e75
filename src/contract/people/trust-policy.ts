import { z } from "zod";
import { scope } from "./token.ts";
import { comparesWithBaseline } from "../jobs/gate.ts";
import { reportRules } from "../batches/report-rules.ts";
import { defaultProject, projectName } from "../project.ts";
import { isGlobMatch } from "../text/glob.ts";
import { oneOrMore } from "../text/one-or-more.ts";
import { secureUrl } from "../text/secure-url.ts";

/** YAML may have numbers and booleans where tokens have texts. */
const claimText = z.union([z.string().min(1).max(500), z.int(), z.boolean()]).transform(String);

const pattern = oneOrMore(claimText);
const digits = textOrNumber(/^\d{1,20}$/, "must be a number");
const digitsOrAny = textOrNumber(/^(\d{1,20}|\*)$/, "must be a number, or * for all");

function textOrNumber(form: RegExp, error: string) {
  return z.union([z.string().regex(form, { error }), z.int().min(0)], { error }).transform(String);
}

/**
 * Claims that identify workflows, in the order of their comparison. Names of repositories and users
 * are left out, since they can change hands, and so is `sub`, whose form is the repository's
 * choice.
 */
const claims = z.strictObject({
  repository_owner_id: oneOrMore(digits),
  repository_id: oneOrMore(digitsOrAny),
  enterprise_id: pattern.optional(),
  repository_visibility: pattern.optional(),
  event_name: pattern.optional(),
  ref: pattern.optional(),
  ref_type: pattern.optional(),
  ref_protected: pattern.optional(),
  base_ref: pattern.optional(),
  environment: pattern.optional(),
  workflow_ref: pattern.optional(),
  job_workflow_ref: pattern.optional(),
  job_workflow_sha: pattern.optional(),
  runner_environment: pattern.optional(),
  actor_id: pattern.optional(),
});
type ClaimName = keyof typeof claims.shape;
const claimNames = z.enum(Object.keys(claims.shape) as [ClaimName, ...ClaimName[]]).options;

/** Events of workflows that everyone can start by opening a pull request. */
const publicEvents = ["pull_request", "pull_request_target"];

const policy = z
  .strictObject({
    name: z.string().min(1).max(100),
    issuer: z.string(),
    claims,
    /** Of the access tokens. It is created where it is not there. */
    project: projectName.default(defaultProject),
    scopes: z.array(scope.exclude(["admin", "tokens:write"])).min(1),
    report: reportRules.optional(),
    expiresInSeconds: z.int().min(60).max(3600).default(3600),
  })
  .refine(({ scopes, report }) => scopes.includes("reports:write") === (report !== undefined), {
    path: ["report"],
    error: "must be given for the scope reports:write, and for no other",
  })
  .refine(({ report }) => report?.suites !== undefined || !comparesWithBaseline(report?.gates), {
    path: ["report", "suites"],
    error: "must be given where a gate compares with a baseline",
  })
  .refine(
    ({ scopes, claims: { ref, environment } }) =>
      !scopes.includes("baselines:write") || ref || environment,
    {
      path: ["claims"],
      error: "must say which ref or environment may write baselines",
    },
  )
  .refine(
    ({ scopes, claims: { event_name } }) =>
      !scopes.includes("baselines:write") || !matchesPublicEvent(event_name),
    {
      path: ["claims", "event_name"],
      error:
        `must be given, and not match ${publicEvents.join(" or ")}, for the scope ` +
        "baselines:write",
    },
  );
export type Policy = z.infer<typeof policy>;

const issuer = z.strictObject({
  issuer: secureUrl,
  audience: z.string().min(1).max(500),
  jwksUri: secureUrl.optional(),
});
export type Issuer = z.infer<typeof issuer>;

/** Whose identity tokens are exchanged for access tokens, and for which. */
export const trustPolicy = z
  .strictObject({ issuers: z.array(issuer).min(1).max(100), policies: z.array(policy).max(10_000) })
  .superRefine(({ issuers, policies }, context) => {
    const known = new Set(issuers.map((each) => each.issuer));
    if (known.size < issuers.length) {
      context.addIssue({ code: "custom", path: ["issuers"], message: "must differ" });
    }
    for (const [i, each] of policies.entries()) {
      if (known.has(each.issuer)) continue;
      context.addIssue({
        code: "custom",
        path: ["policies", i, "issuer"],
        message: "must be one of the issuers",
      });
    }
  });
export type TrustPolicy = z.infer<typeof trustPolicy>;

type PolicyMatch = { readonly policy: Policy } | { readonly mismatch: ClaimName };

/**
 * The first policy that an identity matches, or the first claim that does not match in the policy
 * that it matches furthest.
 */
export function matchPolicy(
  policies: readonly Policy[],
  identity: Readonly<Record<string, unknown>>,
): PolicyMatch {
  let furthest = 0;
  for (const each of policies) {
    const mismatch = claimNames.findIndex(
      (claim) => !isClaimAllowed(each.claims[claim], identity[claim]),
    );
    if (mismatch < 0) return { policy: each };
    furthest = Math.max(furthest, mismatch);
  }
  return { mismatch: claimNames[furthest] ?? "repository_owner_id" };
}

function isClaimAllowed(patterns: readonly string[] | undefined, value: unknown): boolean {
  return (
    patterns === undefined ||
    (typeof value === "string" && patterns.some((each) => isGlobMatch(each, value)))
  );
}

function matchesPublicEvent(patterns: readonly string[] | undefined): boolean {
  return publicEvents.some((event) => isClaimAllowed(patterns, event));
}
