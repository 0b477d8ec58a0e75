import type { Client } from "../../src/client/create-client.ts";
import { isMarkedLog } from "../../test/support/is-marked-log.ts";
import type { PlayedWorkers } from "./played-workers.ts";
import type { PodHistory } from "./pod-history.ts";
import type { FinishedJob } from "./submitted-jobs.ts";

/** The jobs whose log is not every line of their pods once, or says which may be lost. */
export async function findWrongLogs(
  rest: Client,
  jobs: readonly FinishedJob[],
  { pods, workers }: { readonly pods: PodHistory; readonly workers: PlayedWorkers },
): Promise<FinishedJob[]> {
  const wrong: FinishedJob[] = [];
  for (const job of jobs) {
    const texts = await Array.fromAsync(rest.followLogs(job.id), ({ text }) => text);
    const printed = pods.podsOf(job.name).map(({ name }) => workers.listPrinted(name));
    if (!isMarkedLog(texts, printed)) wrong.push(job);
  }
  return wrong;
}
