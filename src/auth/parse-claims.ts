import { z } from "zod";
import { ServiceError } from "../contract/errors.ts";
import { limits, textLimits } from "../contract/limits.ts";
import type { TrustCheck } from "../contract/people/trust-check.ts";
import { matchPolicy, type TrustPolicy } from "../contract/people/trust-policy.ts";
import { truncate } from "../contract/text/truncate.ts";
import {
  hasHiddenCharacters,
  replaceHiddenCharacters,
} from "../contract/text/hidden-characters.ts";
import type { IssuedPerson } from "../records/people/person-access.ts";

const text = z.string().min(1).optional().catch(undefined);

const personClaims = z.looseObject({
  sub: z.string().min(1).max(255),
  name: text,
  preferred_username: text,
  email: text,
  email_verified: z.unknown().optional(),
});
/** What issuers say of an address that somebody has typed there, and nobody checked. */
const unverified: readonly unknown[] = [false, "false"];
const groupNames = z
  .union([z.array(z.unknown()), z.string().transform((name): unknown[] => [name])])
  .catch([]);

/**
 * The person whom verified claims are of. Groups whose names cannot be members', and those beyond
 * the limit, give nothing.
 * @throws ServiceError sign_in_refused
 */
export function parseClaims(
  claims: Readonly<Record<string, unknown>>,
  { issuer, groupsClaim }: { readonly issuer: string; readonly groupsClaim: string },
): IssuedPerson {
  const parsed = personClaims.safeParse(claims);
  if (!parsed.success) {
    const message = 'The claim "sub" of the single sign-on must be a text of 1 to 255 characters';
    throw new ServiceError("sign_in_refused", message, { cause: parsed.error });
  }
  const { sub: subject, name, preferred_username: userName } = parsed.data;
  const email = unverified.includes(parsed.data.email_verified) ? undefined : parsed.data.email;
  const groups = groupNames.parse(claims[groupsClaim]).filter((name) => isGroupName(name));
  return {
    issuer,
    subject,
    name: shownText(name ?? userName ?? email ?? subject),
    email: email === undefined ? null : shownText(email),
    groups: groups.slice(0, limits.groups),
  };
}

function isGroupName(name: unknown): name is string {
  if (typeof name !== "string" || name === "") return false;
  return name.length <= limits.groupLength && !hasHiddenCharacters(name);
}

function shownText(said: string): string {
  return truncate(replaceHiddenCharacters(said.toWellFormed()), textLimits.name);
}

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
