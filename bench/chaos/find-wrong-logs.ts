import type { Client } from "../../src/client/create-client.ts";
import type { PodHistory } from "./pod-history.ts";
import { podLines } from "./pod-lines.ts";
import type { FinishedJob } from "./submitted-jobs.ts";

type SeenPods = ReturnType<PodHistory["podsOf"]>;

const lostPattern = /^\(lines of the worker may be missing here: /;
const takeoverPattern = /^Another pod takes over: attempt \d+ begins$/;

/** The jobs whose log is not every line of their pods once, or says which may be lost. */
export async function findWrongLogs(
  rest: Client,
  jobs: readonly FinishedJob[],
  pods: PodHistory,
): Promise<FinishedJob[]> {
  const wrong: FinishedJob[] = [];
  for (const job of jobs) {
    const lines = await Array.fromAsync(rest.followLogs(job.id));
    const texts = lines.map(({ text }) => text);
    if (!isRightLog(texts, pods.podsOf(job.name))) wrong.push(job);
  }
  return wrong;
}

/**
 * The lines of each pod come in their order, each once and none without those before it. Where some
 * lack, a line says so; a pod that was lost before it had its assignment has printed none.
 */
function isRightLog(texts: readonly string[], pods: SeenPods): boolean {
  const lost = texts.filter((text) => lostPattern.test(text)).length;
  const takeovers = texts.filter((text) => takeoverPattern.test(text)).length;
  const parts = pods.map(({ name, hasSucceeded }) => {
    const all = podLines(name);
    const own = texts.filter((text) => text.endsWith(` of ${name}`));
    const isPart = own.every((text, index) => text === all[index]);
    return {
      count: own.length,
      isPart,
      mustBeWhole: hasSucceeded,
      isWhole: own.length === all.length,
    };
  });
  const printed = parts.reduce((sum, { count }) => sum + count, 0);
  const incomplete = parts.filter(
    ({ count, isWhole, mustBeWhole }) => !isWhole && (count > 0 || mustBeWhole),
  );
  return (
    printed + lost + takeovers === texts.length &&
    parts.every(({ isPart }) => isPart) &&
    incomplete.length <= lost
  );
}
