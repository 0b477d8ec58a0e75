import { ServiceError } from "../contract/errors.ts";
import { exchangedToken } from "../contract/token.ts";
import { matchPolicy, type Policy, type TrustPolicy } from "../contract/trust-policy.ts";
import { defaultProject } from "../records/default-project.ts";
import { issueToken } from "./issue-token.ts";
import type { Records } from "../records/open-records.ts";
import type { Log } from "../log/json-log.ts";
import {
  clockToleranceSeconds,
  type Identity,
  createIdentityVerifier,
  invalidIdentityError,
} from "./identity-verifier.ts";

interface TokenExchangeContext {
  readonly records: Pick<Records, "tokens" | "identities">;
  readonly now: () => Date;
  readonly log: Log;
}

/** Exchanges identity tokens, each once, for short-lived access tokens with the scopes of the policy that they fit. */
export function createTokenExchange(
  { records, now, log }: TokenExchangeContext,
  trust: TrustPolicy,
) {
  const verify = createIdentityVerifier(trust, now);

  /** @throws ServiceError identity_token_invalid, identity_token_refused, unavailable */
  return async (identityToken: string) => {
    const identity = await verify(identityToken);
    const { name, scopes, expiresInSeconds } = selectPolicy(trust, identity);
    const { iss: issuer, jti, exp } = identity;
    const isFirst = await records.identities.spend({
      issuer,
      jti,
      until: (exp + clockToleranceSeconds) * 1000,
    });
    if (!isFirst) throw invalidIdentityError("The identity token was exchanged already");
    const expiresAt = new Date(now().getTime() + expiresInSeconds * 1000).toISOString();
    const minted = await issueToken(records, {
      name: identityName(identity),
      scopes,
      expiresAt,
      policy: name,
      repository: claimAsText(identity["repository"]),
      project: defaultProject,
    });
    log("info", "An identity token was exchanged", { token: minted.id, policy: name, identity });
    return exchangedToken.parse(minted);
  };
}

function selectPolicy({ policies }: TrustPolicy, identity: Identity): Policy {
  const match = matchPolicy(
    policies.filter(({ issuer }) => issuer === identity.iss),
    identity,
  );
  if ("policy" in match) return match.policy;
  const value = identity[match.mismatch];
  const actual = value === undefined ? "missing" : JSON.stringify(value).slice(0, 500);
  const message = `No trust policy fits the identity token: its claim "${match.mismatch}" is ${actual}`;
  throw new ServiceError("identity_token_refused", message);
}

/** Who it was given to, for people. */
function identityName(identity: Identity): string {
  const { repository, ref, run_id, run_attempt } = identity;
  return `${claimAsText(repository)} ${claimAsText(ref)} run ${claimAsText(run_id)}.${claimAsText(run_attempt)}`
    .slice(0, 200)
    .toWellFormed();
}

function claimAsText(claim: unknown): string {
  return typeof claim === "string" ? claim : "?";
}
