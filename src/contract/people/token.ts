import { z } from "zod";
import { personId, tokenId } from "../id.ts";
import { limits } from "../limits.ts";
import { projectName } from "../project.ts";

/** Every scope of tokens, and what it allows. */
export const scopeTable = {
  "jobs:read": "Read jobs, batches, logs, artifacts and targets.",
  "jobs:write": "Start and cancel jobs and batches.",
  "models:write": "Upload models.",
  "baselines:write": "Record what later jobs are compared with.",
  "reports:write": "Have check runs written on commits by the service's GitHub App.",
  "webhooks:write": "Have changes of jobs and batches sent to webhooks.",
  "tokens:write":
    "Create, list and revoke tokens of the person whose the token is, with at most its scopes.",
  admin: "Manage the project's tokens and members; includes every other scope.",
} as const;

export type Scope = keyof typeof scopeTable;
export const scope = z.enum(Object.keys(scopeTable) as [Scope, ...Scope[]]);

export const tokenRequest = z
  .strictObject({
    name: z
      .string()
      .min(1)
      .max(100)
      .describe("Name for people, for instance where the token is used."),
    scopes: z.array(scope).min(1).max(scope.options.length),
    expiresInDays: z
      .int()
      .min(1)
      .max(3650)
      .nullable()
      .default(limits.tokenDays)
      .describe("Null for a token that does not expire."),
    project: projectName
      .optional()
      .describe(
        "Project of the token, the caller's own by default. Others need an administrator of the " +
          "project `default`.",
      ),
  })
  .meta({ id: "TokenRequest" });
export type TokenRequest = z.infer<typeof tokenRequest>;

/** A token as lists show it, without the secret. */
export const token = z
  .object({
    id: tokenId,
    project: projectName,
    name: z.string(),
    scopes: z.array(scope),
    prefix: z.string().describe("First characters of the token, to recognise it by."),
    createdAt: z.iso.datetime(),
    expiresAt: z.iso.datetime().nullable().describe("Null for a token that does not expire."),
    lastUsedAt: z.iso
      .datetime()
      .nullable()
      .describe("When a request last had it, to within a minute; null before the first one."),
    revokedAt: z.iso.datetime().nullable().describe("It is refused since; null while it is valid."),
    replacedBy: tokenId
      .nullable()
      .default(null)
      .describe("The token that took its place, and can be replaced now; null before."),
    policy: z
      .string()
      .nullable()
      .describe(
        "Trust policy that an identity token was exchanged under for the token; null for other " +
          "tokens.",
      ),
    person: z
      .object({ id: personId, name: z.string() })
      .nullable()
      .describe(
        "Who made the token, or the token that made it: it does no more than the person's role " +
          "allows at the time. Null for tokens of commands and of trust policies.",
      ),
  })
  .meta({ id: "Token" });
export type Token = z.infer<typeof token>;

export const createdToken = token
  .extend({ token: z.string().describe("The token itself, shown this once.") })
  .meta({ id: "CreatedToken" });
export type CreatedToken = z.infer<typeof createdToken>;

export const exchangeRequest = z
  .strictObject({
    token: z
      .string()
      .min(1)
      .max(16_384)
      .describe(
        "OpenID Connect identity token, such as GitHub issues to a workflow. It can be " +
          "exchanged once.",
      ),
  })
  .meta({ id: "ExchangeRequest" });

/** What an identity token is exchanged for. */
export const exchangedToken = z
  .object({
    token: z.string().describe("The access token, shown this once."),
    expiresAt: z.iso.datetime(),
    scopes: z.array(scope),
  })
  .meta({ id: "ExchangedToken" });
