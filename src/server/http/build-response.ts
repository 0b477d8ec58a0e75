import { Readable } from "node:stream";
import { JsonText } from "./json-text.ts";

export function buildResponse(parts: {
  readonly status: number;
  readonly json?: unknown;
  readonly stream?: ReadableStream<Uint8Array> | Readable;
  readonly mediaType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}): Response {
  const { status, json, stream, mediaType } = parts;
  const headers = new Headers(parts.headers);
  if (json instanceof JsonText) {
    headers.set("content-type", "application/json");
    return new Response(json.encode(), { status, headers });
  }
  if (json !== undefined) return Response.json(json, { status, headers });
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
