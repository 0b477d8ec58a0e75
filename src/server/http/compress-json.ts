import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Hono } from "hono";

/** Below it an answer fits into one packet, compressed or not. */
const leastBytes = 1400;

const compress = promisify(gzip);

/** Compresses the JSON answers that are worth it, for callers that take gzip. */
export function compressJson(app: Hono): void {
  app.use(async (c, next) => {
    await next();
    const { headers, status } = c.res;
    // The body of a stream that is only looked at has another buffer.
    if (headers.get("content-type") !== "application/json" || c.res.body === null) return;
    headers.append("vary", "accept-encoding");
    if (!acceptsGzip(c.req.header("accept-encoding"))) return;
    const content = new Uint8Array(await c.res.arrayBuffer());
    if (content.length < leastBytes) {
      c.res = new Response(content, { status, headers });
      return;
    }
    headers.set("content-encoding", "gzip");
    headers.delete("content-length");
    c.res = new Response(await compress(content), { status, headers });
  });
}

function acceptsGzip(accepted = ""): boolean {
  return accepted.split(",").some((each) => /^\s*gzip\s*(;(?!\s*q=0(\.0*)?\s*$)|$)/.test(each));
}
