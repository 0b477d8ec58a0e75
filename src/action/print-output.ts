import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { Writable } from "node:stream";
import * as core from "@actions/core";

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

/** Logs a line with untrusted text in it, which does not begin the line. */
export function logLine(text: string): void {
  core.info(escapeLogLine(text));
}

/** Foreign text on one line of the step's log, without commands of the form `##[` to the runner. */
function escapeLogLine(text: string): string {
  return text.replaceAll("##[", "##\u200b[").replaceAll(/[\r\n]+/g, " ");
}
