import { Readable } from "node:stream";

interface ResponseParts {
  readonly status: number;
  readonly json?: unknown;
  readonly stream?: ReadableStream<Uint8Array> | Readable;
  readonly mediaType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** `takeMemory` is asked for the bytes of JSON; of a stream only a piece is in memory. */
export function buildResponse(
  parts: ResponseParts,
  takeMemory: (bytes: number) => void = () => {},
): Response {
  const { status, json, stream, mediaType } = parts;
  const headers = new Headers(parts.headers);
  if (json !== undefined) {
    const text = json instanceof JsonText ? json.encode() : JSON.stringify(json);
    takeMemory(text.length);
    headers.set("content-type", "application/json");
    return new Response(text, { status, headers });
  }
  if (stream === undefined) return new Response(null, { status, headers });
  if (mediaType !== undefined) headers.set("content-type", contentType(mediaType));
  const body = stream instanceof Readable ? Readable.toWeb(stream) : stream;
  return new Response(body, { status, headers });
}

function contentType(mediaType: string): string {
  return mediaType.startsWith("text/") ? `${mediaType}; charset=utf-8` : mediaType;
}

export function isETagMatch(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = (ifNoneMatch ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes(etag) || tags.includes("*");
}

/** A value of type `T` that is JSON text already, in pieces. */
export class JsonText<T> {
  declare readonly type: T;
  readonly #pieces: readonly string[];

  constructor(pieces: readonly string[]) {
    this.#pieces = pieces;
  }

  /** Encodes each piece into its place: joined, they would be copied three times on their way. */
  encode(): Uint8Array<ArrayBuffer> {
    const pieces = this.#pieces;
    const length = pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
    const bytes = Buffer.allocUnsafe(length);
    let at = 0;
    for (const piece of pieces) at += bytes.write(piece, at);
    return bytes;
  }
}
