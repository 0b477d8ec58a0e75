import { z } from "zod";
import { jobStatus } from "./status.ts";
import { joinLines } from "../text/hidden-characters.ts";

/** Longest line, bytes; a longer one is split into several. */
export const maxLogLineBytes = 65_536;

/** A line as a worker reports it, which has split what is longer. */
export const reportedLine = z
  .string()
  .max(maxLogLineBytes)
  .overwrite((text) => joinLines(text.toWellFormed()))
  .refine((text) => isShort(text) || new TextEncoder().encode(text).length <= maxLogLineBytes, {
    error: `must have at most ${maxLogLineBytes} bytes`,
  });

/** Whether a text has few bytes whatever its characters are: a UTF-16 unit has three at most. */
function isShort(text: string): boolean {
  return text.length <= maxLogLineBytes / 3;
}

/** One line of a job's terminal output. */
export const logLine = z
  .object({
    seq: z
      .int()
      .min(1)
      .describe("Number of the line in the job, rising by one: the cursor to resume after."),
    at: z.iso.datetime().describe("When the worker wrote it."),
    stream: z.enum(["stdout", "stderr"]).describe("Which output of the worker it was written to."),
    text: z
      .string()
      .describe(`The line without its line break, of at most ${maxLogLineBytes} bytes.`),
  })
  .meta({ id: "LogLine" });
export type LogLine = z.infer<typeof logLine>;

/** Last event of a log stream: nothing follows it. */
export const logEnd = z.object({ status: jobStatus.describe("Final status of the job.") });
