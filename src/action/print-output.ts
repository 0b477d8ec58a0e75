import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { Writable } from "node:stream";
import * as core from "@actions/core";
import { inert } from "./inert.ts";

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
      if (!output.write(withoutCommand(text, mark))) await once(output, "drain");
    });
  } finally {
    core.endGroup();
  }
}

/** In one write, so that commands are not stopped when our own come: warnings, and secrets that are to be masked. */
function withoutCommand(text: string, mark: string): string {
  const line = inert(text);
  return line.includes("::") ? `::stop-commands::${mark}\n${line}\n::${mark}::\n` : `${line}\n`;
}
