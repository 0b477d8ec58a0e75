import { errors } from "jose";

/** Why an identity token is refused, for its sender. */
export function identityErrorMessage(error: errors.JOSEError): string {
  if (error instanceof errors.JWTClaimValidationFailed) return claimErrorMessage(error);
  if (error instanceof errors.JWTExpired) {
    return `The identity token expired at ${formatEpochSeconds(error.payload.exp)}`;
  }
  if (error instanceof errors.JWSSignatureVerificationFailed) {
    return "The identity token is not signed by its issuer";
  }
  if (error instanceof errors.JOSEAlgNotAllowed) {
    return "The identity token must be signed by RS256";
  }
  if (error instanceof errors.JWKSNoMatchingKey) {
    return "The identity token is signed by a key that its issuer has not";
  }
  return "The identity token is not a JSON Web Token that is signed";
}

function claimErrorMessage({ claim, reason, payload }: errors.JWTClaimValidationFailed): string {
  if (reason === "missing") return `The identity token lacks the claim "${claim}"`;
  if (claim === "nbf") {
    return `The identity token is not valid before ${formatEpochSeconds(payload.nbf)}`;
  }
  const value = JSON.stringify(payload[claim]);
  return `Claim "${claim}" of the identity token is ${value}, which is not for this service`;
}

function formatEpochSeconds(seconds: number | undefined): string {
  const time = new Date((seconds ?? NaN) * 1000);
  return Number.isNaN(time.getTime()) ? "an unknown time" : time.toISOString();
}
