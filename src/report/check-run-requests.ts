import type { Annotation } from "./build-annotations.ts";
import type { Conclusion } from "./conclude.ts";
import { githubLimits } from "./github-limits.ts";
import type { CheckOutput } from "./report.ts";

/** What a check run shows. */
export interface CheckContent {
  readonly output: CheckOutput;
  /** Without it the check run is in progress. */
  readonly conclusion?: Conclusion | undefined;
  /** GitHub adds them to those that the check run has. */
  readonly annotations?: readonly Annotation[];
}

/** Requests that together tell the content: each takes so many annotations, and the last one completes the check run. */
export function checkRunRequests({ output, conclusion, annotations = [] }: CheckContent) {
  const chunks = [];
  for (let i = 0; i === 0 || i < annotations.length; i += githubLimits.annotations) {
    chunks.push(annotations.slice(i, i + githubLimits.annotations));
  }
  return chunks.map((chunk, i) => ({
    ...(conclusion && i === chunks.length - 1
      ? { status: "completed" as const, conclusion }
      : { status: "in_progress" as const }),
    output: { ...output, annotations: chunk.map(annotationBody) },
  }));
}

function annotationBody({ place, level, title, message }: Annotation) {
  return {
    path: place.file,
    start_line: place.line,
    end_line: place.line,
    annotation_level: level,
    title,
    message,
  };
}
