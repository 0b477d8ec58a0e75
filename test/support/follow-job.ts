import type { Client } from "../../src/client/create-client.ts";
import type { LogLine } from "../../src/contract/jobs/log.ts";

/** The lines of a job and its status, when it has ended. */
export async function followJob(
  client: Client,
  jobId: string,
): Promise<{ lines: LogLine[]; status: string }> {
  const lines: LogLine[] = [];
  const following = client.followLogs(jobId);
  for (;;) {
    const next = await following.next();
    if (next.done === true) return { lines, status: next.value };
    lines.push(next.value);
  }
}
