import type { ReportRow } from "./report.ts";

/** What reports and logs call a job. */
export function jobTitle({ model, target }: Pick<ReportRow, "model" | "target">): string {
  return `${model} for ${target}`;
}
