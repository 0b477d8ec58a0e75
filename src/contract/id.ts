import { z } from "zod";

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
const timeLength = 10;
/** Random characters at the end of an id; those before tell the time. */
export const idRandomLength = 16;

function idOf(prefix: string, what: string) {
  return z
    .string()
    .regex(new RegExp(`^${prefix}-[0-9a-hjkmnp-tv-z]{${timeLength + idRandomLength}}$`))
    .describe(`Identifier of the ${what}: sortable by creation time and a valid Kubernetes name.`);
}

export const jobId = idOf("job", "job");
export const batchId = idOf("batch", "batch");
export const tokenId = idOf("token", "token");

/** A lower-case ULID (Crockford base 32: 48 bits of time, 80 random bits) behind a prefix. */
export function newId(prefix: "job" | "batch" | "token", now: Date): string {
  let time = "";
  for (let rest = now.getTime(), i = 0; i < timeLength; i++, rest = Math.floor(rest / 32)) {
    time = alphabet.charAt(rest % 32) + time;
  }
  const random = crypto.getRandomValues(new Uint8Array(idRandomLength));
  return `${prefix}-${time}${Array.from(random, (byte) => alphabet.charAt(byte % 32)).join("")}`;
}
