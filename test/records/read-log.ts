import type { LogLine } from "../../src/contract/jobs/log.ts";
import type { Records } from "../../src/records/open-records.ts";

/** All lines of a job's log. */
export async function readLog({ logs }: Pick<Records, "logs">, jobId: string): Promise<LogLine[]> {
  const lines: LogLine[] = [];
  for (;;) {
    const page = await logs.readPage(jobId, lines.at(-1)?.seq ?? 0);
    if (page.length === 0) return lines;
    lines.push(...page);
  }
}
