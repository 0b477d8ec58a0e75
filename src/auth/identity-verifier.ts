import { decodeJwt, errors, type JWTVerifyGetKey, jwtVerify } from "jose";
import { z } from "zod";
import { ServiceError } from "../contract/errors.ts";
import type { Issuer, TrustPolicy } from "../contract/people/trust-policy.ts";
import { identityErrorMessage } from "./identity-error-message.ts";
import { createIssuerKeyFinder } from "./issuer-key-finder.ts";

const identity = z.looseObject({
  iss: z.string(),
  jti: z.string().min(1).max(255),
  exp: z.number(),
});
/** Verified claims of an identity token. */
export type Identity = z.infer<typeof identity>;

/** Largest difference between an issuer's clock and the service's, seconds. */
export const clockToleranceSeconds = 60;

interface TrustedIssuer extends Issuer {
  readonly findKey: JWTVerifyGetKey;
}

type IdentityVerifier = (token: string) => Promise<Identity>;

/**
 * Verifies identity tokens with the keys of the issuers that are trusted. The verifier throws
 * ServiceError identity_token_invalid or unavailable.
 */
export function createIdentityVerifier(trust: TrustPolicy, now: () => Date): IdentityVerifier {
  const issuers = new Map(
    trust.issuers.map((issuer) => [
      issuer.issuer,
      { ...issuer, findKey: createIssuerKeyFinder(issuer, now) },
    ]),
  );
  return async (token) => {
    try {
      return await verifyIdentity(issuers, token, now());
    } catch (error) {
      if (!(error instanceof errors.JOSEError)) throw error;
      throw invalidIdentityError(identityErrorMessage(error), error);
    }
  };
}

export function invalidIdentityError(message: string, cause?: unknown): ServiceError {
  const headers = { "www-authenticate": 'Bearer error="invalid_token"' };
  return new ServiceError("identity_token_invalid", message, { cause, headers });
}

async function verifyIdentity(
  issuers: ReadonlyMap<string, TrustedIssuer>,
  token: string,
  currentDate: Date,
): Promise<Identity> {
  const { iss } = decodeJwt(token);
  const issuer = issuers.get(iss ?? "");
  if (issuer === undefined) {
    throw invalidIdentityError(`This service trusts no tokens of the issuer "${iss}"`);
  }
  const { payload } = await jwtVerify(token, issuer.findKey, {
    issuer: issuer.issuer,
    audience: issuer.audience,
    algorithms: ["RS256"],
    clockTolerance: clockToleranceSeconds,
    currentDate,
    requiredClaims: ["exp", "iat", "jti"],
  });
  const latest = currentDate.getTime() / 1000 + clockToleranceSeconds;
  if ((payload.iat ?? Infinity) > latest) {
    throw invalidIdentityError("The identity token was issued in the future");
  }
  const parsed = identity.safeParse(payload);
  if (parsed.success) return parsed.data;
  const message = 'Claim "jti" of the identity token must be a text of 1 to 255 characters';
  throw invalidIdentityError(message, parsed.error);
}
