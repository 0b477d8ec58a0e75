import type { GateName } from "../contract/gate-table.ts";
import type { Place, Places } from "../contract/github-report.ts";
import { describeGate } from "./figures.ts";
import { githubLimits } from "./github-limits.ts";
import { truncateToBytes } from "./markdown.ts";
import type { ReportRow } from "./report.ts";

export interface Annotation {
  readonly place: Place;
  readonly title: string;
  readonly message: string;
  readonly level: "failure" | "warning";
}

/** More than these nobody reads one by one; reports hold all of them. */
const maxAnnotations = 200;

/** What is told beside lines of the repository: models that failed, then gates that failed. */
export function buildAnnotations(
  rows: readonly ReportRow[],
  { models, gates }: Places,
): Annotation[] {
  const placesByModel = new Map(models.map(({ model, ...place }) => [model, place]));
  const placesByGate = new Map<GateName, Place>(gates.map(({ gate, ...place }) => [gate, place]));
  const failures = rows.flatMap(({ model, target, job }) => {
    const place = placesByModel.get(model);
    if (!place || !job?.error) return [];
    const { code, message } = job.error;
    return truncateAnnotation({
      place,
      level: "failure",
      title: `${model} for ${target} failed`,
      message: `${code}: ${message}`,
    });
  });
  const misses = rows.flatMap(({ model, target, job }) =>
    (job?.gates ?? []).flatMap((result) => {
      const place = placesByGate.get(result.gate) ?? placesByModel.get(model);
      if (result.passed || !place) return [];
      const [level, words] =
        result.level === "warn"
          ? (["warning", "warns"] as const)
          : (["failure", "failed"] as const);
      return truncateAnnotation({
        place,
        level,
        title: `${model} for ${target}: a gate ${words}`,
        message: describeGate(result),
      });
    }),
  );
  return [...failures, ...misses].slice(0, maxAnnotations);
}

function truncateAnnotation({ title, message, ...rest }: Annotation): Annotation {
  return {
    ...rest,
    title: truncateToBytes(title, githubLimits.annotationTitleBytes),
    message: truncateToBytes(message, githubLimits.annotationMessageBytes),
  };
}
