import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { Writable } from "node:stream";
import * as core from "@actions/core";
import { inert } from "./inert.ts";

/** Prints a line that is not ours. */
export type PrintLine = (text: string) => Promise<void>;

/**
 * A foldable group of lines in the step's log. Until the work ends, the runner takes no line for a command; a model's
 * output could hold any.
 */
export async function printOutput<T>(
  title: string,
  output: Writable,
  work: (print: PrintLine) => Promise<T>,
): Promise<T> {
  const mark = randomUUID();
  core.startGroup(title);
  core.info(`::stop-commands::${mark}`);
  try {
    return await work(async (text) => {
      if (!output.write(`${inert(text)}\n`)) await once(output, "drain");
    });
  } finally {
    core.info(`::${mark}::`);
    core.endGroup();
  }
}
