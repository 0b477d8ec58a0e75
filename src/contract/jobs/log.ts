import { z } from "zod";

/** Longest line, bytes; a longer one is split into several. */
export const maxLogLineBytes = 65_536;

/** One line of a job's terminal output. */
export const logLine = z
  .object({
    seq: z
      .int()
      .min(1)
      .describe("Number of the line in the job, rising by one: the cursor to resume after."),
    at: z.iso.datetime().describe("When the worker wrote it."),
    stream: z.enum(["stdout", "stderr"]).describe("Which output of the worker it was written to."),
    text: z.string().describe("The line without its line break."),
  })
  .meta({ id: "LogLine" });
export type LogLine = z.infer<typeof logLine>;

/** Last event of a log stream: nothing follows it. */
export const logEnd = z.object({ status: z.string().describe("Final status of the job.") });
