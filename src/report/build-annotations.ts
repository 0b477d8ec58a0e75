import { describeGate } from "../contract/jobs/describe-gate.ts";
import type { GateName } from "../contract/jobs/gate-table.ts";
import type { Place, Places } from "../contract/batches/github-report.ts";
import { githubLimits, truncateToBytes } from "./markdown.ts";
import { jobTitle } from "./report.ts";
import type { ReportRow } from "./report.ts";

/** A message beside a line of the repository. */
export interface Annotation {
  readonly place: Place;
  readonly title: string;
  readonly message: string;
  readonly level: "failure" | "warning";
}

/** The report has the others. */
const maxAnnotations = 200;

/** Annotations of models that failed, then of gates that did not pass. */
export function buildAnnotations(rows: readonly ReportRow[], places: Places): Annotation[] {
  const modelPlaces = new Map(places.models.map(({ model, ...place }) => [model, place]));
  const gatePlaces = new Map(places.gates.map(({ gate, ...place }) => [gate, place]));
  const failures = rows.flatMap((row) => failureAnnotations(row, modelPlaces.get(row.model)));
  const misses = rows.flatMap((row) =>
    gateAnnotations(row, gatePlaces, modelPlaces.get(row.model)),
  );
  return [...failures, ...misses].slice(0, maxAnnotations).map(truncateAnnotation);
}

function failureAnnotations(row: ReportRow, place: Place | undefined): Annotation[] {
  const error = row.job?.error;
  if (!place || !error) return [];
  const title = `${jobTitle(row)} failed`;
  return [{ place, level: "failure", title, message: error.message }];
}

function gateAnnotations(
  row: ReportRow,
  gatePlaces: ReadonlyMap<GateName, Place>,
  modelPlace: Place | undefined,
): Annotation[] {
  const missed = row.job?.gates.filter(({ passed }) => !passed) ?? [];
  return missed.flatMap((result): Annotation[] => {
    const place = gatePlaces.get(result.gate) ?? modelPlace;
    if (!place) return [];
    const message = describeGate(result, { against: row.job?.baseline?.branch });
    return result.level === "warn"
      ? [{ place, level: "warning", title: `${jobTitle(row)}: a gate warns`, message }]
      : [{ place, level: "failure", title: `${jobTitle(row)}: a gate failed`, message }];
  });
}

function truncateAnnotation({ title, message, ...rest }: Annotation): Annotation {
  return {
    ...rest,
    title: truncateToBytes(title, githubLimits.annotationTitleBytes),
    message: truncateToBytes(message, githubLimits.annotationMessageBytes),
  };
}
