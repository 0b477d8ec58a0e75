import { z } from "zod";
import { ServiceError } from "../contract/errors.ts";
import { qualifyRepositoryId, type Workflow } from "../contract/people/principal.ts";
import { exchangedToken } from "../contract/people/token.ts";
import { truncate } from "../contract/text/truncate.ts";
import { replaceHiddenCharacters } from "../contract/text/hidden-characters.ts";
import { matchPolicy, type Policy, type TrustPolicy } from "../contract/people/trust-policy.ts";
import type { Log } from "../log/json-log.ts";
import type { Records } from "../records/open-records.ts";
import { generateToken } from "./access-token.ts";
import {
  clockToleranceSeconds,
  createIdentityVerifier,
  type Identity,
  invalidIdentityError,
} from "./identity-verifier.ts";

interface TokenExchangeContext {
  readonly records: Pick<Records, "tokens">;
  readonly now: () => Date;
  readonly log: Log;
}

/**
 * Gives the access token for an identity token.
 * @throws ServiceError identity_token_invalid, identity_token_refused, unavailable
 */
export type TokenExchange = (identityToken: string) => Promise<z.infer<typeof exchangedToken>>;

/** Longest name of a token that was exchanged, characters. */
const nameLength = 200;
/** Longest value of a claim in a message, characters. */
const claimLength = 500;

/**
 * Exchanges identity tokens, each once, for short-lived access tokens with the scopes of the policy
 * that matches.
 */
export function createTokenExchange(
  context: TokenExchangeContext,
  trust: TrustPolicy,
): TokenExchange {
  const verify = createIdentityVerifier(trust, context.now);
  return async (identityToken) => {
    const identity = await verify(identityToken);
    const policy = selectPolicy(trust, identity);
    const workflow = { ...parseRun(identity), report: policy.report ?? null };
    return issueForIdentity(context, identity, policy, workflow);
  };
}

/** @throws ServiceError identity_token_invalid for an identity token that was exchanged before */
async function issueForIdentity(
  { records, now, log }: TokenExchangeContext,
  identity: Identity,
  policy: Policy,
  workflow: Workflow,
): Promise<z.infer<typeof exchangedToken>> {
  const { name, scopes, expiresInSeconds, project } = policy;
  const newToken = generateToken({
    name: identityName(identity),
    scopes,
    expiresAt: new Date(now().getTime() + expiresInSeconds * 1000).toISOString(),
    policy: name,
    workflow,
  });
  const issued = await records.tokens.exchange(project, newToken, spentIdentity(identity));
  if (issued === undefined) throw invalidIdentityError("The identity token was exchanged already");
  log("info", "An identity token was exchanged", { token: issued.id, policy: name, identity });
  return exchangedToken.parse(issued);
}

function spentIdentity({ iss: issuer, jti, exp }: Identity) {
  return { issuer, jti, until: (exp + clockToleranceSeconds) * 1000 };
}

function selectPolicy({ policies }: TrustPolicy, identity: Identity): Policy {
  const candidates = policies.filter(({ issuer }) => issuer === identity.iss);
  const match = matchPolicy(candidates, identity);
  if ("policy" in match) return match.policy;
  const { mismatch: claim } = match;
  const value = identity[claim];
  const actual = value === undefined ? "missing" : truncate(JSON.stringify(value), claimLength);
  const message = `No trust policy fits the identity token: its claim "${claim}" is ${actual}`;
  throw new ServiceError("identity_token_refused", message);
}

const runClaims = z.object({
  repository_id: z.string().regex(/^\d{1,20}$/),
  repository: z.string().min(1).max(200),
  sha: z.string().min(1).max(64),
  event_name: z.string().min(1).max(100),
  ref: z.string().max(1000),
  base_ref: z.string().max(1000).default(""),
});

/** @throws ServiceError identity_token_invalid where it does not say what it was given for */
function parseRun(identity: Identity): Omit<Workflow, "report"> {
  const { success, data, error } = runClaims.safeParse(identity);
  if (success) {
    const { repository_id: id, repository, sha: commit, event_name: event, ref } = data;
    const repositoryId = qualifyRepositoryId(identity.iss, id);
    return { repositoryId, repository, commit, event, ref, baseRef: data.base_ref };
  }
  const [claim] = error.issues.map(({ path }) => String(path[0]));
  throw invalidIdentityError(
    `Claim "${claim}" of the identity token says no workflow's run`,
    error,
  );
}

/** Repository, ref and run of the workflow, so that a list of tokens shows who asked for one. */
function identityName({ repository, ref, run_id, run_attempt }: Identity): string {
  const run = `${claimAsText(run_id)}.${claimAsText(run_attempt)}`;
  const name = `${claimAsText(repository)} ${claimAsText(ref)} run ${run}`;
  return truncate(replaceHiddenCharacters(name.toWellFormed()), nameLength);
}

function claimAsText(claim: unknown): string {
  return typeof claim === "string" ? claim : "?";
}
