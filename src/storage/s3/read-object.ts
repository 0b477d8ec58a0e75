import { PassThrough, pipeline, type Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { readAnswerHeader } from "../request-source.ts";
import { isMissing, type S3Client, type S3Request } from "./s3-client.ts";

/** How often a broken connection is opened again without a new byte. */
const maxFruitlessReadings = 3;
/** The system's, as for files of a folder. */
const absentFileCode = "ENOENT";

interface ObjectReading {
  /** First byte; by default 0. */
  readonly start?: number | undefined;
  /** Last byte, inclusive; by default that of the object. */
  readonly end?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called with the version of the object before its first byte. */
  readonly onEtag?: (etag: string) => void;
}

/** Goes on after a broken connection. Fails with `ENOENT` if there is no such object. */
export async function* readObject(
  client: S3Client,
  key: string,
  { start = 0, end, signal, onEtag }: ObjectReading = {},
): AsyncGenerator<Buffer> {
  let next = start;
  let version: ObjectVersion | undefined;
  for (let fruitless = 0; next < (version?.stop ?? Infinity); fruitless++) {
    const answer = await openObject(client, {
      method: "GET",
      key,
      headers: positionHeaders({ next, end, etag: version?.etag }),
      signal,
    });
    if (version === undefined) {
      version = readVersion(answer, start);
      onEtag?.(version.etag);
    }
    try {
      for await (const chunk of answer.body) {
        if (!Buffer.isBuffer(chunk)) throw new TypeError("The answer is not a stream of bytes");
        yield chunk;
        next += chunk.length;
        fruitless = 0;
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (fruitless === maxFruitlessReadings) throw error;
    }
  }
}

interface ObjectVersion {
  readonly etag: string;
  /** Byte after the last one that is read. */
  readonly stop: number;
}

function readVersion(answer: Dispatcher.ResponseData, start: number): ObjectVersion {
  const length = Number(readAnswerHeader(answer, "content-length"));
  return { etag: readAnswerHeader(answer, "etag") ?? "*", stop: start + length };
}

interface ReadPosition {
  readonly next: number;
  readonly end: number | undefined;
  readonly etag: string | undefined;
}

function positionHeaders({ next, end, etag }: ReadPosition): Record<string, string> {
  const isWhole = next === 0 && end === undefined;
  const range: Record<string, string> = isWhole ? {} : { range: `bytes=${next}-${end ?? ""}` };
  return etag === undefined ? range : { ...range, "if-match": etag };
}

/** As `readObject()`; the connection ends with the stream. */
export function streamObject(
  client: S3Client,
  key: string,
  range: Pick<ObjectReading, "start" | "end"> = {},
): Readable {
  const abort = new AbortController();
  const output = new PassThrough();
  output.once("close", () => abort.abort());
  // What fails ends the output with its error.
  pipeline(readObject(client, key, { ...range, signal: abort.signal }), output, () => {});
  return output;
}

async function openObject(client: S3Client, request: S3Request) {
  try {
    return await client.open(request);
  } catch (cause) {
    if (!isMissing(cause)) throw cause;
    const error = new Error(`There is no object "${request.key}"`, { cause });
    throw Object.assign(error, { code: absentFileCode });
  }
}
