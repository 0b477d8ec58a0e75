import { createLocalJWKSet, errors, type JWTVerifyGetKey, type LocalJWKSet } from "jose";
import { z } from "zod";
import { ServiceError } from "../contract/errors.ts";
import type { Issuer } from "../contract/trust-policy.ts";

/** A key that its issuer has withdrawn is not trusted for longer. */
const maxAgeMs = 600_000;
/** However many tokens name keys that nobody knows, their issuer is not asked more often. */
const minFetchIntervalMs = 30_000;
const fetchTimeoutMs = 5_000;

interface CachedKeys {
  readonly fetchedAt: number;
  readonly ids: ReadonlySet<string>;
  readonly findKey: LocalJWKSet;
}

const keySet = z.object({ keys: z.array(z.looseObject({ kid: z.string(), kty: z.string() })) });

/** Finds the key of an issuer that a token names. Keys are kept, and fetched again for a token that names another one. */
export function createIssuerKeyFinder(
  { issuer, jwksUri = `${issuer}/.well-known/jwks` }: Issuer,
  now: () => Date,
) {
  let cached: CachedKeys | undefined;
  let fetching: Promise<CachedKeys> | undefined;
  const fetchKeys = async () => {
    const { keys } = await readKeySet(issuer, jwksUri);
    const ids = new Set(keys.map(({ kid }) => kid));
    cached = { fetchedAt: now().getTime(), ids, findKey: createLocalJWKSet({ keys }) };
    return cached;
  };
  const keysYoungerThan = async (ageMs: number) => {
    if (cached !== undefined && now().getTime() - cached.fetchedAt < ageMs) return cached;
    fetching ??= fetchKeys().finally(() => (fetching = undefined));
    return fetching;
  };
  const findKey: JWTVerifyGetKey = async (header, token) => {
    if (header.kid === undefined) throw new errors.JWKSNoMatchingKey();
    const cachedKeys = await keysYoungerThan(maxAgeMs);
    const keys = cachedKeys.ids.has(header.kid)
      ? cachedKeys
      : await keysYoungerThan(minFetchIntervalMs);
    return keys.findKey(header, token);
  };
  return findKey;
}

async function readKeySet(issuer: string, url: string): Promise<z.infer<typeof keySet>> {
  try {
    const answer = await fetch(url, {
      redirect: "error",
      signal: AbortSignal.timeout(fetchTimeoutMs),
    });
    if (!answer.ok) throw new Error(`"${url}" answered with status ${answer.status}`);
    return keySet.parse(await answer.json());
  } catch (cause) {
    const headers = { "retry-after": "5" };
    throw new ServiceError("unavailable", `The keys of issuer "${issuer}" cannot be read`, {
      cause,
      headers,
    });
  }
}
