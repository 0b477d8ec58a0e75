import type { KubernetesClient } from "./kubernetes-client.ts";
import { KubernetesError } from "./kubernetes-error.ts";
import { decodeUtf8 } from "./protobuf/decode-utf8.ts";
import { backOffMs, delay } from "../limits/retry.ts";

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
/** Lines of the container begin with a time, whose end may be cut off. */
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
    await delay(backOffMs(attemptsWithoutNewLines, maxRetryMs));
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

const lineFeed = 0x0a;

/**
 * Lines of a stream, each with its line feed; the last one lacks it where the stream ends without.
 * A line above `maxBytes` comes in pieces, cut between characters, of which the last has the line
 * feed.
 */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<string, void, undefined> {
  let rest: Uint8Array = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let start = 0;
    let searched = rest.length;
    for (;;) {
      const end = bytes.indexOf(lineFeed, searched);
      const stop = end === -1 ? bytes.length : end + 1;
      while (stop - start > maxBytes) {
        const cut = findCharacterStart(bytes, start + maxBytes);
        yield decodeUtf8(bytes.subarray(start, cut));
        start = cut;
      }
      if (end === -1) break;
      yield decodeUtf8(bytes.subarray(start, stop));
      start = searched = stop;
    }
    rest = bytes.subarray(start);
  }
  if (rest.length > 0) yield decodeUtf8(rest);
}

/** The last index up to `at` where a UTF-8 character starts. */
function findCharacterStart(bytes: Uint8Array, at: number): number {
  let start = at;
  while (at - start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start--;
  return start;
}

interface TimedLine {
  readonly at: string;
  readonly text: string;
}

/** Bound of the disorder of lines: an older line than this before the newest does not come. */
const overlapSeconds = 1;

/** The newest lines of a log, to skip the lines that repeat when the log is opened again. */
export class RecentLines {
  /** Count of each line, by the second of its time. */
  readonly #bySecond = new Map<number, Map<string, number>>();
  #newest = -Infinity;
  #newLineCount = 0;
  /** Count of each line that is expected again. */
  #expectedRepeats = new Map<string, number>();

  get newLineCount(): number {
    return this.#newLineCount;
  }

  /** Start of the next read of the log: RFC 3339, in whole seconds. */
  get since(): string | undefined {
    if (this.#newest === -Infinity) return undefined;
    return `${new Date((this.#newest - overlapSeconds) * 1000).toISOString().slice(0, 19)}Z`;
  }

  /** To be called when the log is opened again from `since`. */
  expectRepeats(): void {
    this.#expectedRepeats = new Map();
    for (const lines of this.#bySecond.values()) {
      for (const [line, count] of lines)
        this.#expectedRepeats.set(line, (this.#expectedRepeats.get(line) ?? 0) + count);
    }
  }

  /** Records the line if it is new, and returns whether it is. */
  addIfNew({ at, text }: TimedLine): boolean {
    const line = `${at} ${text}`;
    const again = this.#expectedRepeats.get(line) ?? 0;
    if (again > 0) {
      this.#expectedRepeats.set(line, again - 1);
      return false;
    }
    this.#newLineCount += 1;
    const second = Math.floor(Date.parse(at) / 1000);
    if (second > this.#newest) this.#advance(second);
    const lines = this.#bySecond.get(second) ?? new Map<string, number>();
    this.#bySecond.set(second, lines.set(line, (lines.get(line) ?? 0) + 1));
    return true;
  }

  #advance(second: number): void {
    this.#newest = second;
    for (const old of this.#bySecond.keys())
      if (old < second - overlapSeconds) this.#bySecond.delete(old);
  }
}
