import type { GateName } from "../contract/gate.ts";
import { gateText } from "./figures.ts";
import { limits } from "./limits.ts";
import { cutToBytes } from "./markdown.ts";
import type { ReportRow } from "./report.ts";

/** A line of a file in the repository. */
export interface Place {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
}

/** Where the repository names what a batch is made of. */
export interface Places {
  readonly ofModel: (model: string) => Place | undefined;
  readonly ofGate: (gate: GateName) => Place | undefined;
}

export interface Annotation {
  readonly place: Place;
  readonly title: string;
  readonly message: string;
  readonly level: "failure" | "warning";
}

/** More than these nobody reads one by one; reports hold all of them. */
const maxAnnotations = 200;

/** What is told beside lines of the repository: models that failed, then gates that failed. */
export function annotationsOf(rows: readonly ReportRow[], { ofModel, ofGate }: Places): Annotation[] {
  const failures = rows.flatMap(({ model, target, job }) => {
    const place = ofModel(model);
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
      const place = ofGate(result.gate) ?? ofModel(model);
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
