import { createHash, randomInt } from "node:crypto";
import { crc32 } from "node:zlib";
import type { NewToken } from "../records/people/token-records.ts";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const scheme = "mos_";
const randomLength = 30;
const checksumLength = 6;
/** Of a token's first characters, which a list shows it by. */
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

function tokenChecksum(text: string): string {
  let digits = "";
  let rest = crc32(text);
  for (let i = 0; i < checksumLength; i++) {
    digits = alphabet.charAt(rest % alphabet.length) + digits;
    rest = Math.floor(rest / alphabet.length);
  }
  return digits;
}

/** A token with a new secret. */
export function generateToken(fields: Omit<NewToken, "secret" | "prefix" | "hash">): NewToken {
  const secret = generateAccessToken();
  return { ...fields, secret, prefix: secret.slice(0, prefixLength), hash: hashSecret(secret) };
}
