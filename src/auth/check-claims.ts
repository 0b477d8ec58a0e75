import { matchPolicy, type TrustCheck, type TrustPolicy } from "../contract/people/trust-policy.ts";

/** Which access token the claims of an identity token give, whose signature nobody asks for. */
export function checkClaims(
  { issuers, policies }: TrustPolicy,
  claims: Readonly<Record<string, unknown>>,
): TrustCheck {
  const trusted = issuers.find(({ issuer }) => issuer === claims["iss"]);
  if (trusted === undefined) return { grant: null, mismatch: "iss" };
  if ("aud" in claims && claims["aud"] !== trusted.audience) {
    return { grant: null, mismatch: "aud" };
  }
  const candidates = policies.filter(({ issuer }) => issuer === trusted.issuer);
  const match = matchPolicy(candidates, claims);
  if ("mismatch" in match) return { grant: null, mismatch: match.mismatch };
  const { name: policy, project, scopes, expiresInSeconds } = match.policy;
  return { grant: { policy, project, scopes, expiresInSeconds }, mismatch: null };
}
