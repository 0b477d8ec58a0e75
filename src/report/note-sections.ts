import type { Job } from "../contract/jobs/job.ts";
import type { Section } from "./compose-sections.ts";
import { inlineCode } from "./markdown.ts";
import type { ReportRow } from "./report.ts";

const maxBaselines = 5;

/** Baselines, warnings and cautions that concern the jobs. */
export function noteSections(rows: readonly ReportRow[]): Section[] {
  const jobs = rows.flatMap(({ job }) => job ?? []);
  const notes = [...baselineNotes(jobs), ...warningNotes(jobs), ...accuracyNotes(jobs)];
  return notes.length === 0 ? [] : [{ head: "### Notes\n", rows: notes }];
}

function baselineNotes(jobs: readonly Job[]): string[] {
  const baselines = jobs.flatMap(({ baseline }) => baseline ?? []);
  if (baselines.length === 0) return [];
  const commits = new Set(baselines.map(({ branch, sha }) => `${branch} at ${sha.slice(0, 7)}`));
  const shown = [...commits].slice(0, maxBaselines).map(inlineCode).join(", ");
  const left = jobs.length - baselines.length;
  const without = left === 0 ? "" : `; ${left} of ${jobs.length} jobs have no baseline`;
  return [`- ▲ and ▼ compare with ${shown}${without}.`];
}

function warningNotes(jobs: readonly Job[]): string[] {
  const warnings = jobs.flatMap(({ telemetry }) => telemetry.warnings);
  const byText = Map.groupBy(warnings, ({ code, message }) => `${code}: ${message}`);
  return [...byText].map(([text, all]) => {
    const count = all.length > 1 ? ` (${all.length} jobs)` : "";
    return `- ⚠️ ${inlineCode(text)}${count}`;
  });
}

function accuracyNotes(jobs: readonly Job[]): string[] {
  const isGenerated = jobs.some(({ telemetry }) => telemetry.accuracy?.data === "generated");
  if (!isGenerated) return [];
  const caution = "Accuracy on generated samples shows gross damage only";
  return [`- ${caution}; give samples as \`recipe.evaluation.data\`.`];
}
