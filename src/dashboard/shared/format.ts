import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import type { Revision } from "../../contract/revision.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { jobTitle } from "../../report/report.ts";

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** An age for people, such as `4 min ago`; the date once it is more than a day. */
export function formatAge(at: number, now: number): string {
  const age = now - at;
  if (age < -day) return formatDate(at);
  if (age < -minute) return `in ${formatDuration(-age)}`;
  if (age < minute) return age < 10 * second ? "now" : `${Math.floor(age / second)} s ago`;
  if (age < hour) return `${Math.floor(age / minute)} min ago`;
  return age < day ? `${Math.floor(age / hour)} h ago` : formatDate(at);
}

/** A span of time in its two largest units, such as `2 min 08 s`. */
export function formatDuration(ms: number): string {
  if (ms < second) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = Math.floor(ms / second) % 60;
  if (ms < minute) return `${seconds} s`;
  const minutes = Math.floor(ms / minute) % 60;
  if (ms < hour) return `${minutes} min ${String(seconds).padStart(2, "0")} s`;
  const hours = Math.floor(ms / hour) % 24;
  if (ms < day) return `${hours} h ${String(minutes).padStart(2, "0")} min`;
  return `${Math.floor(ms / day)} d ${hours} h`;
}

/** A moment on the reader's clock, with its zone. */
export function formatExactTime(at: number): string {
  return `${formatDate(at)} ${formatClock(at)}`;
}

/** The time of the day on the reader's clock, with its zone: `04:22:28 GMT-5`. */
export function formatClock(at: number): string {
  const time = new Date(at);
  const parts = [time.getHours(), time.getMinutes(), time.getSeconds()].map(padTwo);
  return `${parts.join(":")} ${zoneFormat.formatToParts(time).at(-1)?.value ?? ""}`.trim();
}

const zoneFormat = new Intl.DateTimeFormat("en", { timeZoneName: "short" });

function formatDate(at: number): string {
  const time = new Date(at);
  return [time.getFullYear(), time.getMonth() + 1, time.getDate()].map(padTwo).join("-");
}

function padTwo(value: number): string {
  return String(value).padStart(2, "0");
}

/** A latency for people, with three significant digits: `4.75 ms`. */
export function formatMs(ms: number): string {
  return `${Number(ms.toPrecision(3))} ms`;
}

/** What a result saves of its original's bytes; some need more. */
export function formatSaving(bytes: number): string {
  if (bytes === 0) return "as large as the original";
  return `${formatBytes(Math.abs(bytes))} ${bytes > 0 ? "smaller" : "larger"} than the original`;
}

const ordinalRules = new Intl.PluralRules("en", { type: "ordinal" });
const ordinalEnds = { one: "st", two: "nd", few: "rd", other: "th", zero: "th", many: "th" };

/** A place in a row: `1st`, `22nd`. */
export function formatOrdinal(place: number): string {
  return `${place}${ordinalEnds[ordinalRules.select(place)]}`;
}

/** A commit for people, such as `5a1b7e0 on main`. */
export function describeCommit({ sha, branch }: Pick<Revision, "sha" | "branch">): string {
  return branch === undefined ? sha.slice(0, 7) : `${sha.slice(0, 7)} on ${branch}`;
}

/** A job's name beside its target: the model's where nobody gave the job another one. */
export function shortJobName({
  name,
  model,
  target,
}: Pick<JobSummary, "name" | "model" | "target">) {
  return name === jobTitle({ model, target }) ? model : name;
}

/** Fields with their values as texts; those of objects after their names. */
export function flattenFields(fields: object, prefix = ""): [string, string][] {
  return Object.entries(fields).flatMap(([name, value]: [string, unknown]) => {
    const isNested = typeof value === "object" && value !== null && !Array.isArray(value);
    if (isNested) return flattenFields(value, `${prefix}${name}.`);
    const text = Array.isArray(value) ? value.join(", ") || "none" : String(value);
    return [[`${prefix}${name}`, text]];
  });
}
