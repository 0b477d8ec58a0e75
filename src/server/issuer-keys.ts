import { createLocalJWKSet, errors, type JWTVerifyGetKey, type LocalJWKSet } from "jose";
import { z } from "zod";
import { ServiceError } from "../contract/errors.ts";
import type { Issuer } from "../contract/trust-policy.ts";

/** A key that its issuer has withdrawn is not trusted for longer. */
const maxAgeMs = 600_000;
/** However many tokens name keys that nobody knows, their issuer is not asked more often. */
const minPauseMs = 30_000;
const fetchTimeoutMs = 5_000;

interface KnownKeys {
  readonly fetchedAt: number;
  readonly ids: ReadonlySet<string>;
  readonly find: LocalJWKSet;
}

const keySet = z.object({ keys: z.array(z.looseObject({ kid: z.string(), kty: z.string() })) });

/** Finds the key of an issuer that a token names. Keys are kept, and fetched again for a token that names another one. */
export function issuerKeys({ issuer, jwksUri = `${issuer}/.well-known/jwks` }: Issuer, now: () => Date) {
  let known: KnownKeys | undefined;
  let fetching: Promise<KnownKeys> | undefined;
  const fetchKeys = async () => {
    const { keys } = await readKeySet(issuer, jwksUri);
    const ids = new Set(keys.map(({ kid }) => kid));
    known = { fetchedAt: now().getTime(), ids, find: createLocalJWKSet({ keys }) };
    return known;
  };
  const keysYoungerThan = async (ageMs: number) => {
    if (known !== undefined && now().getTime() - known.fetchedAt < ageMs) return known;
    fetching ??= fetchKeys().finally(() => (fetching = undefined));
    return fetching;
  };
  const find: JWTVerifyGetKey = async (header, token) => {
    if (header.kid === undefined) throw new errors.JWKSNoMatchingKey();
    const kept = await keysYoungerThan(maxAgeMs);
    const keys = kept.ids.has(header.kid) ? kept : await keysYoungerThan(minPauseMs);
    return keys.find(header, token);
  };
  return find;
}

async function readKeySet(issuer: string, url: string): Promise<z.infer<typeof keySet>> {
  try {
    const answer = await fetch(url, { redirect: "error", signal: AbortSignal.timeout(fetchTimeoutMs) });
    if (!answer.ok) throw new Error(`"${url}" answered with status ${answer.status}`);
    return keySet.parse(await answer.json());
  } catch (cause) {
    const headers = { "retry-after": "5" };
    throw new ServiceError("unavailable", `The keys of issuer "${issuer}" cannot be read`, { cause, headers });
  }
}
