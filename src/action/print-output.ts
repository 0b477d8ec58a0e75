import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { Writable } from "node:stream";
import * as core from "@actions/core";
import { escapeLogLine } from "./escape-log-line.ts";

/** Prints a line that is not ours. */
export type PrintLine = (text: string) => Promise<void>;

/** A foldable group of lines in the step's log. A model's output could hold any command; the runner takes none of them. */
export async function printOutput<T>(
  title: string,
  output: Writable,
  work: (print: PrintLine) => Promise<T>,
): Promise<T> {
  const mark = randomUUID();
  core.startGroup(title);
  try {
    return await work(async (text) => {
      if (!output.write(disableCommands(text, mark))) await once(output, "drain");
    });
  } finally {
    core.endGroup();
  }
}

/** In one write, so that commands are not stopped when our own come: warnings, and secrets that are to be masked. */
function disableCommands(text: string, mark: string): string {
  const line = escapeLogLine(text);
  return line.includes("::") ? `::stop-commands::${mark}\n${line}\n::${mark}::\n` : `${line}\n`;
}
