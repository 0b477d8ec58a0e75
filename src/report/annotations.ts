import type { GateName } from "../contract/gate.ts";
import type { Place, Places } from "../contract/github-report.ts";
import { gateText } from "./figures.ts";
import { limits } from "./limits.ts";
import { cutToBytes } from "./markdown.ts";
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
export function annotationsOf(rows: readonly ReportRow[], { models, gates }: Places): Annotation[] {
  const ofModel = new Map(models.map(({ model, ...place }) => [model, place]));
  const ofGate = new Map<GateName, Place>(gates.map(({ gate, ...place }) => [gate, place]));
  const failures = rows.flatMap(({ model, target, job }) => {
    const place = ofModel.get(model);
    if (!place || !job?.error) return [];
    const { code, message } = job.error;
    return annotation({
      place,
      level: "failure",
      title: `${model} for ${target} failed`,
      message: `${code}: ${message}`,
    });
  });
  const misses = rows.flatMap(({ model, target, job }) =>
    (job?.gates ?? []).flatMap((result) => {
      const place = ofGate.get(result.gate) ?? ofModel.get(model);
      if (result.passed || !place) return [];
      const [level, words] =
        result.level === "warn" ? (["warning", "warns"] as const) : (["failure", "failed"] as const);
      return annotation({ place, level, title: `${model} for ${target}: a gate ${words}`, message: gateText(result) });
    }),
  );
  return [...failures, ...misses].slice(0, maxAnnotations);
}

function annotation({ title, message, ...rest }: Annotation): Annotation {
  return {
    ...rest,
    title: cutToBytes(title, limits.annotationTitleBytes),
    message: cutToBytes(message, limits.annotationMessageBytes),
  };
}
