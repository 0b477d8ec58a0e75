import { createLocalJWKSet, errors, type JWTVerifyGetKey, type LocalJWKSet } from "jose";
import { z } from "zod";
import { ServiceError } from "../contract/errors.ts";
import type { Issuer } from "../contract/people/trust-policy.ts";
import { readBoundedText } from "./read-bounded-text.ts";

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
export function createIssuerKeyFinder(
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
