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
  const accuracy = points.some(({ perplexityRatio }) => perplexityRatio !== undefined)
    ? ["perplexity / original's", "KL divergence", "predicted"]
    : ["SQNR", "predicted"];
  const head = tableHead(["", "size", ...accuracy, "all weights"]);
  const front = foldSection("The search's results", { head, rows: points.map(pointRow) });
  if (mostSensitive.length === 0) return [front];
  const rows = mostSensitive.map(({ name, form, sqnrDb, klDivergence }) =>
    tableRow([inlineCode(name), inlineCode(form), formatLoss(klDivergence, sqnrDb)]),
  );
  const isLanguage = mostSensitive.some(({ klDivergence }) => klDivergence !== undefined);
  const loss = isLanguage ? "KL divergence" : "SQNR of the outputs";
  const weights = { head: tableHead(["weight", "only it in", loss]), rows };
  return [front, foldSection("Weights that hurt most", weights)];
}

function pointRow(point: SearchPoint): string {
  const { bytes, sqnrDb, perplexityRatio, klDivergence, form = "", chosen } = point;
  const predicted = formatLoss(point.predictedKlDivergence, point.predictedSqnrDb);
  const accuracy =
    perplexityRatio === undefined
      ? [formatDecibels(sqnrDb)]
      : [perplexityRatio.toFixed(3), formatLoss(klDivergence)];
  return tableRow([
    chosen ? "➡️" : "",
    formatBytes(bytes),
    ...accuracy,
    predicted,
    inlineCode(form),
  ]);
}

/** Empty where neither is known. */
function formatLoss(klDivergence: number | undefined, sqnrDb?: number): string {
  if (klDivergence !== undefined) return `${klDivergence.toFixed(4)} nats`;
  return sqnrDb === undefined ? "" : formatDecibels(sqnrDb);
}
