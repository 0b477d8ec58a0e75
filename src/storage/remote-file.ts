import type { Dispatcher } from "undici";
import {
  type DownloadSource,
  readBodyChunks,
  requireIdentity,
  type SlowestPace,
  tryRequests,
  watchPace,
} from "./download.ts";
import { PermanentDownloadError, readAnswerHeader } from "./request-source.ts";

/** A file that stays where it is, and which must not change while parts of it are read. */
export interface RemoteFile {
  readonly bytes: number;
  /** `ETag`, else `Last-Modified`; undefined where the host states neither. */
  readonly version?: string | undefined;
}

interface RangeOptions {
  readonly signal: AbortSignal;
  /** By default that of the contract. */
  readonly slowest?: SlowestPace | undefined;
}

/**
 * Asks for the first bytes of a file, which may have fewer, and for what it is.
 * @throws ServiceError model_not_found, model_fetch_failed, model_source_slow
 */
export async function openRemoteFile(
  source: DownloadSource,
  count: number,
  options: RangeOptions,
): Promise<{ file: RemoteFile; first: Buffer }> {
  const chunks: Buffer[] = [];
  const file = await readRange(
    source,
    { offset: 0, length: count, of: undefined },
    {
      ...options,
      onChunk: async (chunk) => void chunks.push(chunk),
    },
  );
  return { file, first: Buffer.concat(chunks) };
}

interface ReadOptions extends RangeOptions {
  /** Called with each part, one after the other. */
  readonly onChunk: (chunk: Buffer) => Promise<void>;
}

interface WantedRange {
  readonly offset: number;
  readonly length: number;
  /** Undefined where it is not known yet: the range is cut at the file's end then. */
  readonly of: RemoteFile | undefined;
}

/**
 * Reads a part of a file, and goes on where a connection was lost.
 * @throws ServiceError as openRemoteFile does, also where the file has changed or its host does not
 * serve ranges
 */
export async function readRange(
  source: DownloadSource,
  wanted: WantedRange,
  { signal, slowest, onChunk }: ReadOptions,
): Promise<RemoteFile> {
  using pace = watchPace(source.name, slowest);
  const options = { signal: AbortSignal.any([signal, pace.signal]), progress: { bytes: 0 } };
  let known = wanted.of;
  return await tryRequests(source, options, async (requestFile) => {
    for (;;) {
      const start = wanted.offset + options.progress.bytes;
      const end = Math.min(wanted.offset + wanted.length, known?.bytes ?? Infinity);
      if (known !== undefined && start >= end) return known;
      const headers = { range: `bytes=${start}-${end - 1}`, "if-range": strongVersion(known) };
      const answer = await requestFile(headers, options.signal);
      try {
        const part = checkAnswer(answer, { start, end, known });
        known = part.file;
        for await (const chunk of readBodyChunks(answer.body)) {
          if (options.progress.bytes + chunk.length > part.end - wanted.offset) {
            throw new PermanentDownloadError(`sent more than the bytes ${start}-${part.end - 1}`);
          }
          await onChunk(chunk);
          options.progress.bytes += chunk.length;
          pace.count(chunk.length);
        }
        const at = wanted.offset + options.progress.bytes;
        if (at < part.end) throw new Error(`the answer ended at byte ${at} of ${part.end}`);
      } finally {
        // Nobody listens to a body that is not read.
        answer.body.on("error", () => {}).destroy();
      }
    }
  });
}

/** `If-Range` takes only versions that promise equal bytes. */
function strongVersion(file: RemoteFile | undefined): string | undefined {
  return file?.version?.startsWith("W/") === true ? undefined : file?.version;
}

interface AskedRange {
  readonly start: number;
  readonly end: number;
  readonly known: RemoteFile | undefined;
}

/** The numbers are NaN where it has none. */
function parseContentRange(range: string) {
  const [start = NaN, last = NaN, bytes = NaN] =
    /^bytes (\d+)-(\d+)\/(\d+)$/.exec(range)?.slice(1).map(Number) ?? [];
  return { start, end: last + 1, bytes };
}

/** @throws PermanentDownloadError where the answer is not a part of the file that is known */
function checkAnswer(
  answer: Dispatcher.ResponseData,
  { start, end, known }: AskedRange,
): { file: RemoteFile; end: number } {
  requireIdentity(answer);
  const version = readAnswerHeader(answer, "etag") ?? readAnswerHeader(answer, "last-modified");
  if (known !== undefined && version !== known.version) {
    const versions = `version ${known.version ?? "unknown"} is now ${version ?? "unknown"}`;
    throw new PermanentDownloadError(`the file changed while it was read: ${versions}`);
  }
  const asked = `bytes ${start}-${end - 1}`;
  if (answer.statusCode !== 206) {
    throw new PermanentDownloadError(`the host ignores ranges: it sent all for ${asked}`);
  }
  const range = readAnswerHeader(answer, "content-range") ?? "";
  const part = parseContentRange(range);
  if (part.start !== start || !(part.end > start && part.end <= Math.min(end, part.bytes))) {
    throw new PermanentDownloadError(`answered a request for ${asked} with range "${range}"`);
  }
  if (known !== undefined && part.bytes !== known.bytes) {
    const sizes = `it had ${known.bytes} bytes and has ${part.bytes}`;
    throw new PermanentDownloadError(`the file changed while it was read: ${sizes}`);
  }
  return { file: { bytes: part.bytes, version }, end: part.end };
}
