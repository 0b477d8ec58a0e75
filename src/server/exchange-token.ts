import { ServiceError } from "../contract/errors.ts";
import { exchangedToken } from "../contract/token.ts";
import { matchPolicy, type Policy, type TrustPolicy } from "../contract/trust-policy.ts";
import { defaultProject } from "../records/project.ts";
import { mintToken } from "./mint-token.ts";
import type { ServerContext } from "./server-context.ts";
import { clockToleranceSeconds, type Identity, identityVerifier, invalidIdentity } from "./verify-identity.ts";

/** Exchanges identity tokens, each once, for short-lived access tokens with the scopes of the policy that they fit. */
export function tokenExchange({ records, now, log }: ServerContext, trust: TrustPolicy) {
  const verify = identityVerifier(trust, now);

  /** @throws ServiceError identity_token_invalid, identity_token_refused, unavailable */
  return async (identityToken: string) => {
    const identity = await verify(identityToken);
    const { name, scopes, expiresInSeconds } = policyFor(trust, identity);
    const { iss: issuer, jti, exp } = identity;
    const isFirst = await records.identities.spend({ issuer, jti, until: (exp + clockToleranceSeconds) * 1000 });
    if (!isFirst) throw invalidIdentity("The identity token was exchanged already");
    const expiresAt = new Date(now().getTime() + expiresInSeconds * 1000).toISOString();
    const minted = await mintToken(records, {
      name: nameOf(identity),
      scopes,
      expiresAt,
      policy: name,
      repository: text(identity["repository"]),
      project: defaultProject,
    });
    log("info", "An identity token was exchanged", { token: minted.id, policy: name, identity });
    return exchangedToken.parse(minted);
  };
}

function policyFor({ policies }: TrustPolicy, identity: Identity): Policy {
  const match = matchPolicy(
    policies.filter(({ issuer }) => issuer === identity.iss),
    identity,
  );
  if ("policy" in match) return match.policy;
  const value = identity[match.mismatch];
  const found = value === undefined ? "missing" : JSON.stringify(value).slice(0, 500);
  const message = `No trust policy fits the identity token: its claim "${match.mismatch}" is ${found}`;
  throw new ServiceError("identity_token_refused", message);
}

/** Who it was given to, for people. */
function nameOf(identity: Identity): string {
  const { repository, ref, run_id, run_attempt } = identity;
  return `${text(repository)} ${text(ref)} run ${text(run_id)}.${text(run_attempt)}`.slice(0, 200).toWellFormed();
}

function text(claim: unknown): string {
  return typeof claim === "string" ? claim : "?";
}
