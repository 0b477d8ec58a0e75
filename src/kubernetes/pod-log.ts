import { backOffMs, sleep } from "./back-off.ts";
import type { KubernetesClient } from "./kubernetes-client.ts";
import { KubernetesError } from "./kubernetes-error.ts";
import { readLines } from "./read-lines.ts";
import { RecentLines } from "./recent-lines.ts";
import { resources } from "./resources.ts";

export interface ContainerLog {
  readonly pod: string;
  readonly container: string;
}

export interface PodLogLine {
  /** When the node took it in: RFC 3339 with nanoseconds. */
  readonly at: string;
  readonly text: string;
}

/** A longer line comes in pieces with the same time. */
const maxLineBytes = 1024 * 1024;
const maxAttemptsWithoutNewLines = 6;
const maxRetryMs = 5_000;

/**
 * Everything that the node still has of the output of a container that has ended, through as many connections as it
 * takes. Throws `isNotFound` when the pod is gone.
 */
export function readPodLog(
  client: KubernetesClient,
  log: ContainerLog & { readonly previous?: boolean },
  options: { readonly signal?: AbortSignal } = {},
): AsyncGenerator<PodLogLine, void, undefined> {
  return readRemainingLines(client, log, new RecentLines(), options);
}

/**
 * A container's output as it comes, from before the container's start to its end. Each line comes once, through silence,
 * cut connections and rotation of the node's files, as long as the node keeps what a reconnection takes.
 */
export async function* followPodLog(
  client: KubernetesClient,
  log: ContainerLog,
  options: { readonly signal: AbortSignal },
): AsyncGenerator<PodLogLine, void, undefined> {
  const recent = new RecentLines();
  let attemptsWithoutNewLines = 0;
  while (!(await hasContainerTerminated(client, log, options.signal))) {
    const before = recent.newLineCount;
    try {
      yield* readNewLines(client, { ...log, follow: true }, recent, options);
    } catch (error) {
      // A container that has not started, a node that cannot be reached: the pod's status decides.
      if (!(error instanceof KubernetesError)) throw error;
    }
    attemptsWithoutNewLines = recent.newLineCount > before ? 0 : attemptsWithoutNewLines + 1;
    await sleep(backOffMs(attemptsWithoutNewLines, maxRetryMs), options.signal);
  }
  yield* readRemainingLines(client, log, recent, options);
}

/** Until a pass brings nothing new: when the API server loses the node, its answer ends as if it were complete. */
async function* readRemainingLines(
  client: KubernetesClient,
  log: ContainerLog & { readonly previous?: boolean },
  recent: RecentLines,
  options: { readonly signal?: AbortSignal },
): AsyncGenerator<PodLogLine, void, undefined> {
  for (let attemptsWithoutNewLines = 0; ;) {
    const before = recent.newLineCount;
    try {
      const unfinished = yield* readNewLines(client, log, recent, options);
      if (recent.newLineCount > before) continue;
      if (unfinished !== undefined) yield unfinished;
      return;
    } catch (error) {
      attemptsWithoutNewLines = recent.newLineCount > before ? 1 : attemptsWithoutNewLines + 1;
      if (!isTransientError(error) || attemptsWithoutNewLines > maxAttemptsWithoutNewLines)
        throw error;
    }
    await sleep(backOffMs(attemptsWithoutNewLines, maxRetryMs), options.signal);
  }
}

/** One pass over the log from where the last one ended. Returns what follows the last line feed. */
async function* readNewLines(
  client: KubernetesClient,
  { pod, ...log }: ContainerLog & { readonly previous?: boolean; readonly follow?: boolean },
  recent: RecentLines,
  options: { readonly signal?: AbortSignal },
): AsyncGenerator<PodLogLine, PodLogLine | undefined, undefined> {
  recent.expectRepeats();
  const bytes = client.openLog(pod, { ...log, ...options, sinceTime: recent.since });
  let unfinished: PodLogLine | undefined;
  for await (const piece of readLines(bytes, maxLineBytes)) {
    if (unfinished !== undefined && recent.addIfNew(unfinished)) yield unfinished;
    const timeEnd = unfinished === undefined ? piece.indexOf(" ") : -1;
    const at: string = unfinished?.at ?? piece.slice(0, timeEnd);
    const isFinished = piece.endsWith("\n");
    const line = { at, text: piece.slice(timeEnd + 1, isFinished ? -1 : undefined) };
    unfinished = isFinished ? undefined : line;
    if (isFinished && recent.addIfNew(line)) yield line;
  }
  return unfinished;
}

async function hasContainerTerminated(
  client: KubernetesClient,
  log: ContainerLog,
  signal: AbortSignal,
): Promise<boolean> {
  const { status } = await client.get(resources.pods, log.pod, { signal });
  if (status?.phase === "Succeeded" || status?.phase === "Failed") return true;
  const states = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  return states.some(
    ({ name, state }) => name === log.container && state?.terminated !== undefined,
  );
}

/** Whether the same may succeed later. */
function isTransientError(error: unknown): boolean {
  if (!(error instanceof KubernetesError)) return false;
  return error.status === undefined || error.status === 429 || error.status >= 500;
}
