import type { Annotation } from "../report/build-annotations.ts";
import { conclude, type Conclusion } from "../report/conclude.ts";
import { githubLimits, truncateToBytes, utf8ByteLength } from "../report/markdown.ts";
import { renderJobCheck } from "../report/render-job.ts";
import { jobTitle } from "../report/report.ts";
import type { CheckOutput, EndedRow } from "../report/report.ts";

/** A button below a check run of a GitHub App. */
export interface CheckRunAction {
  readonly identifier: string;
  /** At most 20 characters. */
  readonly label: string;
  /** At most 40 characters. */
  readonly description: string;
}

export interface CheckRunContent {
  readonly output: CheckOutput;
  /** Undefined while the check run is in progress. */
  readonly conclusion?: Conclusion | undefined;
  /** GitHub appends them to those of earlier requests. */
  readonly annotations?: readonly Annotation[];
  readonly actions?: readonly CheckRunAction[];
}

/**
 * Bodies of the requests that write the content, in their order: GitHub limits the annotations of
 * each, and only the last one completes the check run.
 */
export function checkRunRequests({
  output,
  conclusion,
  annotations = [],
  actions = [],
}: CheckRunContent) {
  return splitAnnotations(annotations).map((chunk, i, { length }) => ({
    ...checkRunState(i === length - 1 ? conclusion : undefined),
    output: { ...output, annotations: chunk.map(annotationBody) },
    actions: [...actions],
  }));
}

/** At least one chunk, which is empty without annotations. */
function splitAnnotations(annotations: readonly Annotation[]): (readonly Annotation[])[] {
  const chunks = [];
  for (let i = 0; i === 0 || i < annotations.length; i += githubLimits.annotations) {
    chunks.push(annotations.slice(i, i + githubLimits.annotations));
  }
  return chunks;
}

function checkRunState(conclusion: Conclusion | undefined) {
  return conclusion === undefined
    ? { status: "in_progress" as const }
    : { status: "completed" as const, conclusion };
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

/**
 * The name of a batch's check run. A plan proves nothing, so that it has another name than the
 * check that branch protection may require.
 */
export function batchCheckName(checkName: string, isDryRun: boolean): string {
  return joinName(checkName, isDryRun ? " (dry run)" : "");
}

/** A name whose end is whole, in as many bytes as GitHub takes. */
function joinName(start: string, end: string): string {
  const shownEnd = truncateToBytes(end, githubLimits.checkNameBytes);
  const room = githubLimits.checkNameBytes - utf8ByteLength(shownEnd);
  return truncateToBytes(start, room) + shownEnd;
}

interface JobCheckOptions {
  /** Name of the check run of the whole batch. */
  readonly checkName: string;
  readonly failOn: Parameters<typeof conclude>[1];
}

/** The check run of a job that has ended, with the last lines of its output. */
export function jobCheckRun(
  row: EndedRow,
  lastLines: readonly string[],
  { checkName, failOn }: JobCheckOptions,
): { name: string; content: CheckRunContent } {
  const { conclusion } = conclude({ rows: [row] }, failOn);
  const ended = conclusion ?? "neutral";
  return {
    name: joinName(checkName, `: ${jobTitle(row)}`),
    content: { output: renderJobCheck(row, ended, lastLines), conclusion: ended },
  };
}

/** A repository, as parameters of GitHub's REST API name it. */
export interface RepositoryName {
  readonly owner: string;
  readonly repo: string;
}

/** Splits `owner/name`. */
export function parseRepository(fullName: string): RepositoryName {
  const [owner = "", repo = ""] = fullName.split("/");
  return { owner, repo };
}
