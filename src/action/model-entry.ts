import type { Place } from "../contract/batches/github-report.ts";

/** One or several models, as a workflow names them: has either `file` or `source`. */
export interface ModelEntry {
  readonly name?: string | undefined;
  /** Glob of files in the workspace; a leading `!` excludes files. */
  readonly file?: string | undefined;
  readonly source?: string | undefined;
  readonly sha256?: string | undefined;
  /** The entry's line in the batch file; undefined for one of the input `models`. */
  readonly place?: Place | undefined;
}

const linePattern = /^(?:(?<name>[A-Za-z0-9][A-Za-z0-9._-]{0,99})=)?(?<where>.*)$/;
const sourcePattern = /^((https?|s3|gs|hf|file):\/\/|upload:)/;

/** Parses a line of the form `GLOB`, `NAME=GLOB` or `NAME=SOURCE`. */
export function parseModelEntry(line: string): ModelEntry {
  const { name, where = "" } = linePattern.exec(line)?.groups ?? {};
  return sourcePattern.test(where) ? { name, source: where } : { name, file: where };
}
