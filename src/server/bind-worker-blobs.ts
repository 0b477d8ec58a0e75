import type { Hono } from "hono";
import { sha256 as sha256Schema } from "../contract/model.ts";
import { buildResponse } from "./build-response.ts";
import { readBearerToken } from "../auth/authenticate.ts";
import { blobResponse } from "./blob-response.ts";
import { notFoundError } from "./not-found-error.ts";
import type { ServerContext } from "./server-context.ts";
import { storeUpload } from "./store-upload.ts";

/** Files of workers that do not share a disk with the service. */
export function bindWorkerBlobs(app: Hono, context: ServerContext): void {
  const { blobs, executor } = context;
  const path = "/worker/v1/jobs/:id/blobs/:sha256";
  const requireSha256 = (sha256: string) => {
    const { success, data } = sha256Schema.safeParse(sha256);
    if (!success) throw notFoundError("file", sha256);
    return data;
  };

  app.get(path, async (c) => {
    const { raw } = c.req;
    await executor.workers.authenticate(readBearerToken(raw), c.req.param("id"));
    const sha256 = requireSha256(c.req.param("sha256"));
    const found = await blobs.find(sha256);
    if (!found) throw notFoundError("file", sha256);
    if (raw.method === "HEAD") return c.body(null, 200, { "content-length": String(found.bytes) });
    return buildResponse(
      blobResponse(blobs, { sha256, ...found }, raw.headers.get("range") ?? undefined),
    );
  });

  app.put(path, async (c) => {
    await executor.workers.authenticate(readBearerToken(c.req.raw), c.req.param("id"));
    const sha256 = requireSha256(c.req.param("sha256"));
    const { status, blob } = await storeUpload(context, c.req.raw, {
      sha256,
      storeBody: (body, options) => blobs.write(body, { ...options, expectedSha256: sha256 }),
    });
    return c.json(blob, status);
  });
}
