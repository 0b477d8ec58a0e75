import type { z } from "zod";
import { ServiceError } from "../contract/errors.ts";
import { exchangedToken } from "../contract/token.ts";
import { truncate } from "../contract/truncate.ts";
import { matchPolicy, type Policy, type TrustPolicy } from "../contract/trust-policy.ts";
import type { Log } from "../log/json-log.ts";
import { defaultProject } from "../records/default-project.ts";
import type { Records } from "../records/open-records.ts";
import {
  clockToleranceSeconds,
  createIdentityVerifier,
  type Identity,
  invalidIdentityError,
} from "./identity-verifier.ts";
import { issueToken } from "./issue-token.ts";

interface TokenExchangeContext {
  readonly records: Pick<Records, "tokens" | "identities">;
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
    await spendIdentity(context, identity);
    return issueForIdentity(context, identity, policy);
  };
}

/** @throws ServiceError identity_token_invalid for an identity token that was exchanged before */
async function spendIdentity(
  { records }: TokenExchangeContext,
  { iss: issuer, jti, exp }: Identity,
): Promise<void> {
  const until = (exp + clockToleranceSeconds) * 1000;
  const isFirst = await records.identities.spend({ issuer, jti, until });
  if (!isFirst) throw invalidIdentityError("The identity token was exchanged already");
}

async function issueForIdentity(
  { records, now, log }: TokenExchangeContext,
  identity: Identity,
  { name, scopes, expiresInSeconds }: Policy,
): Promise<z.infer<typeof exchangedToken>> {
  const issued = await issueToken(records, {
    name: identityName(identity),
    scopes,
    expiresAt: new Date(now().getTime() + expiresInSeconds * 1000).toISOString(),
    policy: name,
    repository: claimAsText(identity["repository"]),
    project: defaultProject,
  });
  log("info", "An identity token was exchanged", { token: issued.id, policy: name, identity });
  return exchangedToken.parse(issued);
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

/** Repository, ref and run of the workflow, by which a list of tokens shows who asked for one. */
function identityName({ repository, ref, run_id, run_attempt }: Identity): string {
  const run = `${claimAsText(run_id)}.${claimAsText(run_attempt)}`;
  const name = `${claimAsText(repository)} ${claimAsText(ref)} run ${run}`;
  return truncate(name, nameLength).toWellFormed();
}

function claimAsText(claim: unknown): string {
  return typeof claim === "string" ? claim : "?";
}
