import { isTerminal } from "../contract/jobs/status.ts";
import type { ReportRow } from "./report.ts";

/** The outcomes of a job, with their marks and words in reports. */
export const outcomes = {
  passed: { mark: "✅", words: "passed" },
  warned: { mark: "⚠️", words: "passed with a warning" },
  missed: { mark: "❌", words: "failed a gate" },
  failed: { mark: "❌", words: "failed" },
  cancelled: { mark: "⛔", words: "cancelled" },
  open: { mark: "⏳", words: "not ended" },
} as const;

export type Outcome = keyof typeof outcomes;

export function classifyOutcome({ status, gatesFailed, job }: ReportRow): Outcome {
  if (!isTerminal(status)) return "open";
  if (status === "Failed") return "failed";
  if (status === "Cancelled") return "cancelled";
  if (gatesFailed) return "missed";
  return job?.gates.some(({ passed }) => !passed) ? "warned" : "passed";
}
