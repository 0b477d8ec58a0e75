import { Readable } from "node:stream";
import { type Dispatcher, getGlobalDispatcher, request } from "undici";
import { silenceLimitMs } from "./silence-limit.ts";
import type { Transport } from "./transport.ts";

/** Sends requests of Node; a dispatcher such as a proxy agent takes the place of the global one. */
export function createUndiciTransport(dispatcher: Dispatcher | undefined): Transport {
  return async ({ method, url, headers, body, signal }) => {
    const { statusCode, ...answer } = await request(url, {
      method,
      headers,
      body: typeof body === "object" ? Readable.from(body.stream()) : (body ?? null),
      bodyTimeout: silenceLimitMs,
      signal: signal ?? null,
      dispatcher: dispatcher ?? getGlobalDispatcher(),
    });
    return { status: statusCode, headers: answer.headers, body: answer.body };
  };
}
