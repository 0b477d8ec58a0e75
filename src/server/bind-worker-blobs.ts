import type { Hono } from "hono";
import { readBearerToken } from "../auth/authenticate.ts";
import { sha256 as sha256Schema } from "../contract/model.ts";
import type { Blob } from "../storage/blob-store.ts";
import { blobResponse } from "./blob-response.ts";
import { buildResponse } from "./build-response.ts";
import { notFoundError } from "./not-found-error.ts";
import type { ServerContext } from "./server-context.ts";
import { storeUpload } from "./store-upload.ts";

/** Files of workers that share no disk with the service. */
export function bindWorkerBlobs(app: Hono, context: ServerContext): void {
  const path = "/worker/v1/jobs/:id/blobs/:sha256";
  app.on(["GET", "PUT"], path, async (c, next) => {
    await context.executor.workers.authenticate(readBearerToken(c.req.raw), c.req.param("id"));
    await next();
  });
  app.get(path, async (c) => {
    const { raw } = c.req;
    const blob = await findWorkerBlob(context, parseSha256(c.req.param("sha256")));
    if (raw.method === "HEAD") return c.body(null, 200, { "content-length": String(blob.bytes) });
    return buildResponse(blobResponse(context.blobs, blob, raw.headers.get("range") ?? undefined));
  });
  app.put(path, async (c) => {
    const sha256 = parseSha256(c.req.param("sha256"));
    const { status, blob } = await storeUpload(context, c.req.raw, {
      sha256,
      isOffered: true,
      storeBody: (body, options) =>
        context.blobs.write(body, { ...options, expectedSha256: sha256 }),
    });
    return c.json(blob, status);
  });
}

/** @throws ServiceError not_found */
async function findWorkerBlob({ blobs }: ServerContext, sha256: string): Promise<Blob> {
  const stored = await blobs.find(sha256);
  if (!stored) throw notFoundError("file", sha256);
  return { sha256, ...stored };
}

/** @throws ServiceError not_found */
function parseSha256(text: string): string {
  const { success, data } = sha256Schema.safeParse(text);
  if (!success) throw notFoundError("file", text);
  return data;
}
