import { backOffMs, sleep } from "./back-off.ts";
import type { KubernetesClient } from "./kubernetes-client.ts";
import { KubernetesError } from "./kubernetes-error.ts";
import { readLines } from "./read-lines.ts";
import { RecentLines } from "./recent-lines.ts";

interface ContainerLog {
  readonly pod: string;
  readonly container: string;
}

interface PodLogLine {
  /** When the node received the line: RFC 3339 with nanoseconds. */
  readonly at: string;
  readonly text: string;
}

/** A longer line comes in pieces with the same time. */
const maxLineBytes = 1024 * 1024;
/** Lines of the container begin with a time, of which the end may be cut off. */
const kubeletTextPattern = /^[a-z]/i;
const maxAttemptsWithoutNewLines = 6;
const maxRetryMs = 5_000;

/**
 * The output of a container as far as the node still has it, read over as many connections as
 * necessary. It is read until a read adds no lines, since when the API server loses the node, its
 * response ends like a complete one, or until the caller has its last line. Throws `isNotFound`
 * when the pod does not exist, or its node has no log of it.
 */
export async function* readPodLog(
  client: KubernetesClient,
  log: ContainerLog,
  hasLastLine = () => false,
): AsyncGenerator<PodLogLine, void, undefined> {
  const recent = new RecentLines();
  for (let attemptsWithoutNewLines = 0; ;) {
    const before = recent.newLineCount;
    try {
      const unfinished = yield* readNewLines(client, log, recent);
      if (recent.newLineCount > before && !hasLastLine()) continue;
      if (unfinished !== undefined) yield unfinished;
      return;
    } catch (error) {
      attemptsWithoutNewLines = recent.newLineCount > before ? 1 : attemptsWithoutNewLines + 1;
      if (!isTransientError(error) || attemptsWithoutNewLines > maxAttemptsWithoutNewLines) {
        throw error;
      }
    }
    await sleep(backOffMs(attemptsWithoutNewLines, maxRetryMs));
  }
}

/** Reads the log once, from the last line on. Returns the text after the last line feed. */
async function* readNewLines(
  client: KubernetesClient,
  { pod, container }: ContainerLog,
  recent: RecentLines,
): AsyncGenerator<PodLogLine, PodLogLine | undefined, undefined> {
  recent.expectRepeats();
  const bytes = client.openLog(pod, { container, sinceTime: recent.since });
  let unfinished: PodLogLine | undefined;
  for await (const piece of readLines(bytes, maxLineBytes)) {
    if (unfinished !== undefined && recent.addIfNew(unfinished)) yield unfinished;
    const timeEnd = unfinished === undefined ? piece.indexOf(" ") : -1;
    const at: string = unfinished?.at ?? piece.slice(0, timeEnd);
    if (kubeletTextPattern.test(at)) throw lostLogError(pod, piece);
    const isFinished = piece.endsWith("\n");
    const line = { at, text: piece.slice(timeEnd + 1, isFinished ? -1 : undefined) };
    unfinished = isFinished ? undefined : line;
    if (isFinished && recent.addIfNew(line)) yield line;
  }
  return unfinished;
}

/** The kubelet writes why it has no log where the log would be, with the status 200. */
function lostLogError(pod: string, text: string): KubernetesError {
  const message = `The node has no log of the pod "${pod}": ${text.trim()}`;
  return new KubernetesError(message, { status: 404, reason: "LogUnavailable" });
}

/** Whether the same request may succeed later. */
function isTransientError(error: unknown): boolean {
  if (!(error instanceof KubernetesError)) return false;
  return error.status === undefined || error.status === 429 || error.status >= 500;
}
