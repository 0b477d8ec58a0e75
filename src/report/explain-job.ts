import { inlineCode, toOneLine } from "./markdown.ts";
import { type EndedRow, jobTitle, type ReportRow } from "./report.ts";
import { describeGates, rankMissedGates } from "../contract/jobs/describe-gate.ts";
import { gateTable } from "../contract/jobs/gate-table.ts";
import type { Job } from "../contract/jobs/job.ts";

type Explained = Pick<Job, "status" | "cancelledBy" | "error" | "gates" | "baseline">;

/** Text as it is read, and untrusted text in it made harmless. */
interface Wording {
  readonly quote: (text: string) => string;
}

const plainText: Wording = { quote: toOneLine };
const markdown: Wording = { quote: inlineCode };

/**
 * Why a job did not pass, each reason as it follows the job's name; the worst first. Empty for a
 * job that passed.
 */
function listReasons(job: Explained, { quote }: Wording): string[] {
  const { status, cancelledBy, error, gates, baseline } = job;
  if (error) return [`failed: ${quote(error.message.replace(/\.$/, ""))}`];
  if (status === "Cancelled") {
    return [cancelledBy ? `was cancelled by ${quote(cancelledBy.name)}` : "was cancelled"];
  }
  const against = baseline ? quote(baseline.branch) : undefined;
  const missed = rankMissedGates(gates);
  // Gates that lack the same thing, such as a baseline, say so once.
  const byCause = Map.groupBy(missed, (gate) => (gate.actual === null ? gate.note : gate) ?? gate);
  return [...byCause.values()].map((alike) => describeGates(alike, { against, quote }));
}

/** Why a job did not pass, in the words that others with the same reason have too. */
export function nameCause({ error, gates }: Explained): string | undefined {
  if (error) return error.message;
  const [gate] = rankMissedGates(gates);
  if (gate === undefined) return undefined;
  return gate.actual === null && gate.note !== undefined ? gate.note : gateTable[gate.gate].title;
}

/** Why a job did not pass, on a line without its name; the empty string for one that did. */
export function explainShortly(job: Explained): string {
  const [first, ...others] = listReasons(job, plainText);
  if (first === undefined) return "";
  const gates = others.length === 1 ? "gate" : "gates";
  return others.length === 0 ? first : `${first} (and ${others.length} more ${gates})`;
}

/** The same in a sentence with the job's name. */
export function explainInTitle(row: EndedRow): string {
  return toOneLine(`${jobTitle(row)} ${explainShortly(row.job)}`);
}

/** All that a job did not pass, in sentences of Markdown; undefined for one that did. */
export function explainInMarkdown({ model, target, job }: ReportRow): string | undefined {
  const [first, ...others] = job === undefined ? [] : listReasons(job, markdown);
  if (first === undefined) return undefined;
  const title = `${inlineCode(model)} for ${inlineCode(target)}`;
  return [`${title} ${first}.`, ...others.map((reason) => `It ${reason}.`)].join(" ");
}
