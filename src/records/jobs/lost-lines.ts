import type { LogLine } from "../../contract/jobs/log.ts";
import { type AttemptRecord, currentAttempts } from "./find-attempts.ts";

/** The line of a job's log in place of lines that nobody can read any more. */
export function lostLines(why: string): Pick<LogLine, "stream" | "text">[] {
  return [{ stream: "stderr", text: `(lines of the worker may be missing here: ${why})` }];
}

/** The same for each replaced worker whose last lines are not recorded when the job ends. */
export function unreadLines(attempts: readonly AttemptRecord[], now: Date): Omit<LogLine, "seq">[] {
  const current = currentAttempts(attempts);
  const unread = attempts.filter((each) => each.endedAt === null && !current.includes(each));
  const at = now.toISOString();
  return unread.flatMap(({ attempt }) =>
    lostLines(`the job ended before the log of attempt ${attempt} was read`).map((line) => ({
      ...line,
      at,
    })),
  );
}
