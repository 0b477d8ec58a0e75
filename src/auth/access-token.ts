import { createHash, randomInt } from "node:crypto";
import { crc32 } from "node:zlib";
import type { NewToken } from "../records/people/token-records.ts";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const scheme = "mos_";
const randomLength = 30;
const checksumLength = 6;
const prefixLength = 8;
const tokenPattern = new RegExp(`^${scheme}[0-9A-Za-z]{${randomLength + checksumLength}}$`);

/**
 * `mos_`, 30 random base-62 characters, and their CRC-32 in base 62, by which typing errors and
 * leaked tokens are recognised.
 */
export function generateAccessToken(): string {
  const random = Array.from({ length: randomLength }, () =>
    alphabet.charAt(randomInt(alphabet.length)),
  ).join("");
  return `${scheme}${random}${tokenChecksum(random)}`;
}

/** Whether the text has the form of a token; no other text is worth a lookup. */
export function isWellFormedToken(token: string): boolean {
  if (!tokenPattern.test(token)) return false;
  const random = token.slice(scheme.length, -checksumLength);
  return tokenChecksum(random) === token.slice(-checksumLength);
}

/** SHA-256 in hexadecimal. */
export function hashSecret(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** The token's first characters, by which a list shows it. */
function tokenPrefix(token: string): string {
  return token.slice(0, prefixLength);
}

function tokenChecksum(text: string): string {
  let digits = "";
  let rest = crc32(text);
  for (let i = 0; i < checksumLength; i++) {
    digits = alphabet.charAt(rest % alphabet.length) + digits;
    rest = Math.floor(rest / alphabet.length);
  }
  return digits;
}

export type TokenFields = Omit<NewToken, "prefix" | "hash">;

/** A new secret, and the token to store for it. */
export function generateToken(fields: TokenFields): { secret: string; newToken: NewToken } {
  const secret = generateAccessToken();
  return {
    secret,
    newToken: { ...fields, prefix: tokenPrefix(secret), hash: hashSecret(secret) },
  };
}
