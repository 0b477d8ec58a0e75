import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { Writable } from "node:stream";
import * as core from "@actions/core";
import { escapeLogLine } from "./escape-log-line.ts";

type PrintLine = (text: string) => Promise<void>;

/**
 * Prints a group of lines to the step's log. The runner executes no command in them, as a model's
 * output may contain some.
 */
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

/** One write, since the step's own commands (warnings, masks) in between must not be disabled. */
function disableCommands(text: string, mark: string): string {
  const line = escapeLogLine(text);
  return line.includes("::") ? `::stop-commands::${mark}\n${line}\n::${mark}::\n` : `${line}\n`;
}
