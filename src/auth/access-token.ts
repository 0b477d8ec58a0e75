import { createHash, randomInt } from "node:crypto";
import { crc32 } from "node:zlib";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const randomLength = 30;
const checksumLength = 6;
const tokenPattern = new RegExp(`^mos_[0-9A-Za-z]{${randomLength + checksumLength}}$`);

/** `mos_`, 30 random base-62 characters, and their CRC-32 in base 62, by which typing errors and leaked tokens are recognised. */
export function generateAccessToken(): string {
  const random = Array.from({ length: randomLength }, () =>
    alphabet.charAt(randomInt(alphabet.length)),
  ).join("");
  return `mos_${random}${tokenChecksum(random)}`;
}

/** Whether the text can be a token at all, so that others cost no lookup. */
export function isWellFormedToken(token: string): boolean {
  return (
    tokenPattern.test(token) &&
    tokenChecksum(token.slice(4, -checksumLength)) === token.slice(-checksumLength)
  );
}

export function hashSecret(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** Enough of the token to recognise it by in a list. */
export function tokenPrefix(token: string): string {
  return token.slice(0, 8);
}

function tokenChecksum(text: string): string {
  let digits = "";
  for (
    let rest = crc32(text), i = 0;
    i < checksumLength;
    i++, rest = Math.floor(rest / alphabet.length)
  ) {
    digits = alphabet.charAt(rest % alphabet.length) + digits;
  }
  return digits;
}
