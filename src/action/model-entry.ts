import type { Place } from "../contract/github-report.ts";

/** A model, or several, as a workflow names them. */
export interface ModelEntry {
  readonly name?: string | undefined;
  /** Glob of files in the workspace; behind `!` it takes files out. */
  readonly file?: string | undefined;
  readonly source?: string | undefined;
  readonly sha256?: string | undefined;
  /** Where it is named; without it, in the input. */
  readonly place?: Place;
}

const linePattern = /^(?:(?<name>[A-Za-z0-9][A-Za-z0-9._-]{0,99})=)?(?<where>.*)$/;
const sourcePattern = /^(https?:\/\/|file:\/\/|upload:)/;

/** The entry that a line such as `GLOB`, `NAME=GLOB` or `NAME=SOURCE` stands for. */
export function parseModelEntry(line: string, place?: Place): ModelEntry {
  const { name, where = "" } = linePattern.exec(line)?.groups ?? {};
  return {
    name,
    ...(sourcePattern.test(where) ? { source: where } : { file: where }),
    ...(place && { place }),
  };
}
