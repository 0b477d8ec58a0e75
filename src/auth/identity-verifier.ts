import {
  createLocalJWKSet,
  decodeJwt,
  errors,
  jwtVerify,
  type JWTVerifyGetKey,
  type LocalJWKSet,
} from "jose";
import { z } from "zod";
import { ServiceError } from "../contract/errors.ts";
import type { Issuer, TrustPolicy } from "../contract/people/trust-policy.ts";

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

/** Why an identity token is refused, for its sender. */
function identityErrorMessage(error: errors.JOSEError): string {
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

/** A key that its issuer withdrew is trusted for no longer. */
const maxAgeMs = 600_000;
/** Tokens that name unknown keys cannot make the service ask their issuer more often. */
const minFetchIntervalMs = 30_000;
const fetchTimeoutMs = 5_000;
/** Many times what issuers have: GitHub's few keys take 10 KB. */
const maxAnswerBytes = 1_048_576;
const maxKeys = 200;

interface CachedKeys {
  readonly fetchedAt: number;
  readonly ids: ReadonlySet<string>;
  readonly findKey: LocalJWKSet;
}

const keySet = z.object({
  keys: z.array(z.looseObject({ kid: z.string(), kty: z.string() })).max(maxKeys),
});

/** Finds an issuer's key by a token's `kid`. Keys are cached, and fetched for an unknown `kid`. */
function createIssuerKeyFinder(
  { issuer, jwksUri = `${issuer}/.well-known/jwks` }: Issuer,
  now: () => Date,
): JWTVerifyGetKey {
  const keysYoungerThan = cacheKeys(async () => readKeySet(issuer, jwksUri), now);
  return async (header, token) => {
    if (header.kid === undefined) throw new errors.JWKSNoMatchingKey();
    const cached = await keysYoungerThan(maxAgeMs);
    const isKnown = cached.ids.has(header.kid);
    const keys = isKnown ? cached : await keysYoungerThan(minFetchIntervalMs);
    return keys.findKey(header, token);
  };
}

type KeySet = z.infer<typeof keySet>;

/** Gives keys of at most an age, ms. Requests at the same time share one fetch. */
function cacheKeys(fetchKeySet: () => Promise<KeySet>, now: () => Date) {
  let cached: CachedKeys | undefined;
  let fetching: Promise<CachedKeys> | undefined;
  const fetchKeys = async () => {
    const { keys } = await fetchKeySet();
    const ids = new Set(keys.map(({ kid }) => kid));
    cached = { fetchedAt: now().getTime(), ids, findKey: createLocalJWKSet({ keys }) };
    return cached;
  };
  return async (ageMs: number): Promise<CachedKeys> => {
    const age = now().getTime() - (cached?.fetchedAt ?? -Infinity);
    // A clock that was set back makes keys younger than they are.
    if (cached !== undefined && age >= 0 && age < ageMs) return cached;
    fetching ??= fetchKeys().finally(() => (fetching = undefined));
    return fetching;
  };
}

async function readKeySet(issuer: string, url: string): Promise<KeySet> {
  try {
    const response = await fetch(url, {
      redirect: "error",
      signal: AbortSignal.timeout(fetchTimeoutMs),
    });
    if (!response.ok) throw new Error(`"${url}" answered with status ${response.status}`);
    return keySet.parse(JSON.parse(await readBoundedText(response, maxAnswerBytes)));
  } catch (cause) {
    const headers = { "retry-after": "5" };
    const message = `The keys of issuer "${issuer}" cannot be read`;
    throw new ServiceError("unavailable", message, { cause, headers });
  }
}

/** @throws Error where the answer has more bytes */
export async function readBoundedText(response: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw new Error(`The answer has more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
