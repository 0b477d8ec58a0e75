import { decodeJwt, errors, jwtVerify } from "jose";
import { z } from "zod";
import { ServiceError } from "../contract/errors.ts";
import type { TrustPolicy } from "../contract/trust-policy.ts";
import { createIssuerKeyFinder } from "./issuer-key-finder.ts";

const identity = z.looseObject({
  iss: z.string(),
  jti: z.string().min(1).max(255),
  exp: z.number(),
});
/** Verified claims of an identity token. */
export type Identity = z.infer<typeof identity>;

/** Clocks of issuers may differ from the service's by so much, seconds. */
export const clockToleranceSeconds = 60;

/** Verifies identity tokens by the keys of the issuers that are trusted. */
export function createIdentityVerifier({ issuers }: TrustPolicy, now: () => Date) {
  const trustedIssuers = new Map(
    issuers.map((issuer) => [
      issuer.issuer,
      { ...issuer, keys: createIssuerKeyFinder(issuer, now) },
    ]),
  );

  /** @throws ServiceError identity_token_invalid, unavailable */
  return async (token: string): Promise<Identity> => {
    try {
      const { iss } = decodeJwt(token);
      const issuer = trustedIssuers.get(iss ?? "");
      if (issuer === undefined)
        throw invalidIdentityError(`This service trusts no tokens of the issuer "${iss}"`);
      const { payload } = await jwtVerify(token, issuer.keys, {
        issuer: issuer.issuer,
        audience: issuer.audience,
        algorithms: ["RS256"],
        clockTolerance: clockToleranceSeconds,
        currentDate: now(),
        requiredClaims: ["exp", "iat", "jti"],
      });
      const parsed = identity.safeParse(payload);
      if (parsed.success) return parsed.data;
      throw invalidIdentityError(
        'Claim "jti" of the identity token must be a text of 1 to 255 characters',
        parsed.error,
      );
    } catch (error) {
      if (error instanceof errors.JOSEError)
        throw invalidIdentityError(identityErrorMessage(error), error);
      throw error;
    }
  };
}

export function invalidIdentityError(message: string, cause?: unknown): ServiceError {
  const headers = { "www-authenticate": 'Bearer error="invalid_token"' };
  return new ServiceError("identity_token_invalid", message, { cause, headers });
}

function identityErrorMessage(error: errors.JOSEError): string {
  if (error instanceof errors.JWTClaimValidationFailed) return claimErrorMessage(error);
  if (error instanceof errors.JWTExpired)
    return `The identity token expired at ${formatEpochSeconds(error.payload.exp)}`;
  if (error instanceof errors.JWSSignatureVerificationFailed)
    return "The identity token is not signed by its issuer";
  if (error instanceof errors.JOSEAlgNotAllowed)
    return "The identity token must be signed by RS256";
  if (error instanceof errors.JWKSNoMatchingKey)
    return "The identity token is signed by a key that its issuer has not";
  return "The identity token is not a JSON Web Token that is signed";
}

function claimErrorMessage({ claim, reason, payload }: errors.JWTClaimValidationFailed): string {
  if (reason === "missing") return `The identity token lacks the claim "${claim}"`;
  if (claim === "nbf")
    return `The identity token is not valid before ${formatEpochSeconds(payload.nbf)}`;
  return `Claim "${claim}" of the identity token is ${JSON.stringify(payload[claim])}, which is not for this service`;
}

function formatEpochSeconds(seconds: number | undefined): string {
  const time = new Date((seconds ?? NaN) * 1000);
  return Number.isNaN(time.getTime()) ? "an unknown time" : time.toISOString();
}
