import { foldSection, type Section } from "./compose-sections.ts";
import { inlineCode, tableHead, tableRow } from "./markdown.ts";
import type { Job } from "../contract/jobs/job.ts";
import type { SearchPoint } from "../contract/jobs/search.ts";
import { formatBytes } from "../contract/text/format-bytes.ts";
import { formatDecibels } from "../contract/text/format-figure.ts";

/** What a search for a goal ran, and which weights hurt most; none for other jobs. */
export function searchSections({ telemetry: { search } }: Job): Section[] {
  if (search === undefined) return [];
  const { points, mostSensitive } = search;
  const head = tableHead(["", "size", "SQNR", "predicted", "all weights"]);
  const front = foldSection("The search's results", { head, rows: points.map(pointRow) });
  if (mostSensitive.length === 0) return [front];
  const rows = mostSensitive.map(({ name, form, sqnrDb }) =>
    tableRow([inlineCode(name), form, formatDecibels(sqnrDb)]),
  );
  const weights = { head: tableHead(["weight", "only it in", "SQNR of the outputs"]), rows };
  return [front, foldSection("Weights that hurt most", weights)];
}

function pointRow({ bytes, sqnrDb, predictedSqnrDb, form = "", chosen }: SearchPoint): string {
  const predicted = predictedSqnrDb === undefined ? "" : formatDecibels(predictedSqnrDb);
  return tableRow([
    chosen ? "➡️" : "",
    formatBytes(bytes),
    formatDecibels(sqnrDb),
    predicted,
    form,
  ]);
}
