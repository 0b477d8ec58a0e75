import { Readable } from "node:stream";

interface ResponseParts {
  readonly status: number;
  readonly json?: unknown;
  readonly stream?: ReadableStream<Uint8Array> | Readable;
  readonly mediaType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export function buildResponse({
  status,
  json,
  stream,
  mediaType,
  headers,
}: ResponseParts): Response {
  if (json !== undefined) return Response.json(json, { status, headers: { ...headers } });
  if (stream === undefined) return new Response(null, { status, headers: { ...headers } });
  const type = mediaType?.startsWith("text/") ? `${mediaType}; charset=utf-8` : mediaType;
  return new Response(stream instanceof Readable ? Readable.toWeb(stream) : stream, {
    status,
    headers: { ...headers, ...(type !== undefined && { "content-type": type }) },
  });
}
