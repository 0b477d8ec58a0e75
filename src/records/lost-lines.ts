import type { LogLine } from "../../contract/log.ts";

/** The line of a job's log in place of lines that nobody can read any more. */
export function lostLines(why: string): Pick<LogLine, "stream" | "text">[] {
  return [{ stream: "stderr", text: `(lines of the worker may be missing here: ${why})` }];
}
