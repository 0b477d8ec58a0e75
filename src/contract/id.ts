import { z } from "zod";

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
const timeLength = 10;
const randomLength = 16;
/** Last digits of an id, in which the jobs of a batch differ; no two ids made by one process are alike in all others. */
const jobNumberLength = 4;

const patterns = { job: idPattern("job"), batch: idPattern("batch"), token: idPattern("token") };

function idPattern(prefix: string): RegExp {
  return new RegExp(`^${prefix}-[0-9a-hjkmnp-tv-z]{${timeLength + randomLength}}$`);
}

function idSchema(prefix: keyof typeof patterns, what: string) {
  return z
    .string()
    .max(prefix.length + 1 + timeLength + randomLength)
    .regex(patterns[prefix])
    .describe(`Identifier of the ${what}: sortable by creation time and a valid Kubernetes name.`);
}

export const jobId = idSchema("job", "job");
export const batchId = idSchema("batch", "batch");
export const tokenId = idSchema("token", "token");

/** As `jobId` and `batchId` say, for ids that are checked over and over. */
export function isId(prefix: "job" | "batch", text: string | undefined): text is string {
  return text !== undefined && patterns[prefix].test(text);
}

let lastTime = "";
let lastRandom: number[] = [];

/**
 * A lower-case ULID (Crockford base 32: 48 bits of time, 80 random bits) behind a prefix. Those made one after the other
 * within a millisecond sort in that order.
 */
export function newId(prefix: "job" | "batch" | "token", now: Date): string {
  const time = encodeIdTime(now);
  lastRandom = time === lastTime ? nextRandomDigits(lastRandom) : randomDigits();
  lastTime = time;
  return `${prefix}-${time}${lastRandom.map((digit) => alphabet.charAt(digit)).join("")}`;
}

/**
 * An id made of what it stands for, so that whoever makes it again gets the same: the time, and the first 80 bits of
 * `digest`.
 */
export function composeId(
  prefix: "job" | "batch",
  { time, digest }: { time: Date; digest: Uint8Array },
): string {
  const bits = digest
    .subarray(0, (randomLength * 5) / 8)
    .reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
  const random = Array.from({ length: randomLength }, (_, i) =>
    alphabet.charAt(Number((bits >> BigInt(5 * (randomLength - 1 - i))) & 31n)),
  );
  return `${prefix}-${encodeIdTime(time)}${random.join("")}`;
}

/** Id of a job of a batch: the batch's own, its last digits replaced by the job's number, so that jobs sort in their order. */
export function batchJobId(batch: string, index: number): string {
  let number = "";
  for (let rest = index, i = 0; i < jobNumberLength; i++, rest = Math.floor(rest / 32)) {
    number = alphabet.charAt(rest % 32) + number;
  }
  return `job-${batch.slice("batch-".length, -jobNumberLength)}${number}`;
}

/** Name of the custom resource of a batch's job: that of the batch's resource, and the job's number. */
export function batchChildName(batch: string, index: number): string {
  return `${batch}-${String(index).padStart(4, "0")}`;
}

const childName = /^(.+)-(\d{4,})$/;

/** The batch and the number of the job whose custom resource has the name; undefined for all other names. */
export function parseBatchChildName(
  name: string,
): { readonly batch: string; readonly index: number } | undefined {
  const [, batch, digits] = childName.exec(name) ?? [];
  if (batch === undefined || digits === undefined) return undefined;
  const index = Number(digits);
  return batchChildName(batch, index) === name ? { batch, index } : undefined;
}

/** The part of an id that tells when it was made: ids made earlier sort before it, later ones after. */
export function encodeIdTime(now: Date): string {
  let time = "";
  for (let rest = now.getTime(), i = 0; i < timeLength; i++, rest = Math.floor(rest / 32)) {
    time = alphabet.charAt(rest % 32) + time;
  }
  return time;
}

/** When an id was made. */
export function decodeIdTime(id: string): Date {
  const digits = id.slice(id.indexOf("-") + 1).slice(0, timeLength);
  return new Date(
    Array.from(digits).reduce((time, digit) => time * 32 + alphabet.indexOf(digit), 0),
  );
}

function randomDigits(): number[] {
  return Array.from(crypto.getRandomValues(new Uint8Array(randomLength)), (byte) => byte % 32);
}

/** The next random part in order, apart from the digits that number a batch's jobs. */
function nextRandomDigits(digits: readonly number[]): number[] {
  const head = digits.slice(0, -jobNumberLength);
  const carried = head.findLastIndex((digit) => digit < 31);
  const next = head.map((digit, i) => (i < carried ? digit : i === carried ? digit + 1 : 0));
  return [...next, ...digits.slice(-jobNumberLength)];
}
