import { z } from "zod";

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
const timeLength = 10;
const randomLength = 16;
/**
 * Last digits of an id, which number the jobs of a batch. All other digits together are unique
 * among the ids that one process creates.
 */
const jobNumberLength = 4;

const patterns = {
  job: idPattern("job"),
  batch: idPattern("batch"),
  token: idPattern("token"),
  audit: idPattern("audit"),
  webhook: idPattern("webhook"),
  delivery: idPattern("delivery"),
  session: idPattern("session"),
  person: idPattern("person"),
};

function idPattern(prefix: string): RegExp {
  return new RegExp(`^${prefix}-[0-9a-hjkmnp-tv-z]{${timeLength + randomLength}}$`);
}

function idSchema(prefix: keyof typeof patterns, what: string) {
  return z
    .string()
    .max(prefix.length + 1 + timeLength + randomLength)
    .regex(patterns[prefix], { error: `must be the id of a ${what}, such as ${prefix}-01h…` })
    .describe(`Identifier of the ${what}: sortable by creation time and a valid Kubernetes name.`);
}

export const jobId = idSchema("job", "job");
export const batchId = idSchema("batch", "batch");
export const tokenId = idSchema("token", "token");
export const webhookId = idSchema("webhook", "webhook");
export const deliveryId = idSchema("delivery", "delivery");
export const auditId = idSchema("audit", "entry");
export const sessionId = idSchema("session", "session");
export const personId = idSchema("person", "person");

/** The check of `jobId` and `batchId` without the cost of a schema, for frequent use. */
export function isId(prefix: "job" | "batch", text: string | undefined): text is string {
  return text !== undefined && patterns[prefix].test(text);
}

let lastTime = "";
let lastRandom: number[] = [];

/**
 * A lower-case ULID (Crockford base 32: 48 bits of time, 80 random bits) after a prefix. Ids that
 * are created within a millisecond sort in the order of their creation.
 */
export function newId(prefix: keyof typeof patterns, now: Date): string {
  const time = encodeIdTime(now);
  lastRandom = time === lastTime ? nextRandomDigits(lastRandom) : randomDigits();
  lastTime = time;
  return `${prefix}-${time}${lastRandom.map((digit) => alphabet.charAt(digit)).join("")}`;
}

/**
 * An id that follows from what it names, so that it is the same each time it is composed: the time,
 * and the first 80 bits of `digest`.
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

/**
 * Id of a job of a batch: the batch's own, with the job's number as its last digits, so that jobs
 * sort by their numbers.
 */
export function batchJobId(batch: string, index: number): string {
  let number = "";
  for (let rest = index, i = 0; i < jobNumberLength; i++, rest = Math.floor(rest / 32)) {
    number = alphabet.charAt(rest % 32) + number;
  }
  return `job-${batch.slice("batch-".length, -jobNumberLength)}${number}`;
}

/** Name of the CompressionJob of a batch's job: the Batch's name and the job's number. */
export function batchChildName(batch: string, index: number): string {
  return `${batch}-${String(index).padStart(4, "0")}`;
}

const childName = /^(.+)-(\d{4,})$/;

/** Inverse of `batchChildName`; undefined for names that it does not give. */
export function parseBatchChildName(
  name: string,
): { readonly batch: string; readonly index: number } | undefined {
  const [, batch, digits] = childName.exec(name) ?? [];
  if (batch === undefined || digits === undefined) return undefined;
  const index = Number(digits);
  return batchChildName(batch, index) === name ? { batch, index } : undefined;
}

/** The time of an id: ids of earlier times sort before it, ids of later times after it. */
export function encodeIdTime(now: Date): string {
  let time = "";
  for (let rest = now.getTime(), i = 0; i < timeLength; i++, rest = Math.floor(rest / 32)) {
    time = alphabet.charAt(rest % 32) + time;
  }
  return time;
}

/** When an id was created. */
export function decodeIdTime(id: string): Date {
  const digits = id.slice(id.indexOf("-") + 1).slice(0, timeLength);
  return new Date(
    Array.from(digits).reduce((time, digit) => time * 32 + alphabet.indexOf(digit), 0),
  );
}

function randomDigits(): number[] {
  return Array.from(crypto.getRandomValues(new Uint8Array(randomLength)), (byte) => byte % 32);
}

/** The next random part in order; the digits that number a batch's jobs stay. */
function nextRandomDigits(digits: readonly number[]): number[] {
  const head = digits.slice(0, -jobNumberLength);
  const carried = head.findLastIndex((digit) => digit < 31);
  const next = head.map((digit, i) => (i < carried ? digit : i === carried ? digit + 1 : 0));
  return [...next, ...digits.slice(-jobNumberLength)];
}
