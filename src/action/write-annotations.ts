import * as core from "@actions/core";
import type { Annotation } from "../report/build-annotations.ts";

/** The runner takes no more of one step. */
const maxAnnotations = 10;

/** Annotates lines by commands of the runner, where the workflow may write no check runs. */
export function writeAnnotations(annotations: readonly Annotation[]): void {
  for (const { place, level, title, message } of annotations.slice(0, maxAnnotations)) {
    const issueCommand = level === "failure" ? core.error : core.warning;
    issueCommand(message, { title, file: place.file, startLine: place.line });
  }
}
