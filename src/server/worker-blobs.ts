import type { Hono } from "hono";
import { sha256 as sha256Schema } from "../contract/model.ts";
import { answerResponse } from "./answer-response.ts";
import { bearerOf } from "./authenticate.ts";
import { blobAnswer } from "./blob-answer.ts";
import { notFound } from "./not-found.ts";
import type { ServerContext } from "./server-context.ts";
import { storeUpload } from "./store-upload.ts";

/** Files of workers that do not share a disk with the service. */
export function bindWorkerBlobs(app: Hono, context: ServerContext): void {
  const { blobs, executor } = context;
  const path = "/worker/v1/jobs/:id/blobs/:sha256";
  const nameIn = (sha256: string) => {
    const { success, data } = sha256Schema.safeParse(sha256);
    if (!success) throw notFound("file", sha256);
    return data;
  };

  app.get(path, async (c) => {
    const { raw } = c.req;
    await executor.workers.authenticate(bearerOf(raw), c.req.param("id"));
    const sha256 = nameIn(c.req.param("sha256"));
    const found = await blobs.find(sha256);
    if (!found) throw notFound("file", sha256);
    if (raw.method === "HEAD") return c.body(null, 200, { "content-length": String(found.bytes) });
    return answerResponse(blobAnswer(blobs, { sha256, ...found }, raw.headers.get("range") ?? undefined));
  });

  app.put(path, async (c) => {
    await executor.workers.authenticate(bearerOf(c.req.raw), c.req.param("id"));
    const sha256 = nameIn(c.req.param("sha256"));
    const { status, blob } = await storeUpload(context, c.req.raw, {
      sha256,
      take: (body, options) => blobs.write(body, { ...options, expectedSha256: sha256 }),
    });
    return c.json(blob, status);
  });
}
