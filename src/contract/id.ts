import { z } from "zod";

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
const timeLength = 10;
const randomLength = 16;

function idOf(prefix: string, what: string) {
  return z
    .string()
    .regex(new RegExp(`^${prefix}-[0-9a-hjkmnp-tv-z]{${timeLength + randomLength}}$`))
    .describe(`Identifier of the ${what}: sortable by creation time and a valid Kubernetes name.`);
}

export const jobId = idOf("job", "job");
export const batchId = idOf("batch", "batch");
export const tokenId = idOf("token", "token");

let lastTime = "";
let lastRandom: number[] = [];

/**
 * A lower-case ULID (Crockford base 32: 48 bits of time, 80 random bits) behind a prefix. Those made one after the other
 * within a millisecond sort in that order.
 */
export function newId(prefix: "job" | "batch" | "token", now: Date): string {
  const time = idTime(now);
  lastRandom = time === lastTime ? following(lastRandom) : randomDigits();
  lastTime = time;
  return `${prefix}-${time}${lastRandom.map((digit) => alphabet.charAt(digit)).join("")}`;
}

/** The part of an id that tells when it was made: ids made earlier sort before it, later ones after. */
export function idTime(now: Date): string {
  let time = "";
  for (let rest = now.getTime(), i = 0; i < timeLength; i++, rest = Math.floor(rest / 32)) {
    time = alphabet.charAt(rest % 32) + time;
  }
  return time;
}

function randomDigits(): number[] {
  return Array.from(crypto.getRandomValues(new Uint8Array(randomLength)), (byte) => byte % 32);
}

function following(digits: readonly number[]): number[] {
  const carried = digits.findLastIndex((digit) => digit < 31);
  return digits.map((digit, i) => (i < carried ? digit : i === carried ? digit + 1 : 0));
}
