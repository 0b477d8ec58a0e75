import type { Hono } from "hono";
import { readBearerToken } from "../auth/authenticate.ts";
import { sha256 as sha256Schema } from "../contract/model.ts";
import { blobResponse } from "./blob-response.ts";
import { buildResponse } from "./build-response.ts";
import { notFoundError } from "./not-found-error.ts";
import type { ServerContext } from "./server-context.ts";
import { storeUpload } from "./store-upload.ts";
import { findJobProject, requireWorkingWorker } from "./worker-blob-access.ts";

/**
 * Files of workers that share no disk with the service: what their assignment names and what their
 * job has stored, while their attempt runs.
 */
export function bindWorkerBlobs(app: Hono, context: ServerContext): void {
  const path = "/worker/v1/jobs/:id/blobs/:sha256";
  app.get(path, async (c) => {
    const { raw } = c.req;
    const [id, sha256] = [c.req.param("id"), parseSha256(c.req.param("sha256"))];
    const worker = await authenticateWorker(context, raw, id);
    const blob = (await worker.canRead(sha256)) ? await context.blobs.find(sha256) : undefined;
    if (blob === undefined) throw notFoundError("file", sha256);
    if (raw.method === "HEAD") return c.body(null, 200, { "content-length": String(blob.bytes) });
    const range = raw.headers.get("range") ?? undefined;
    return buildResponse(blobResponse(context.blobs, { sha256, ...blob }, range));
  });
  app.put(path, async (c) => {
    const [id, sha256] = [c.req.param("id"), parseSha256(c.req.param("sha256"))];
    await authenticateWorker(context, c.req.raw, id);
    const { records, blobs } = context;
    const { status, blob } = await storeUpload(context, c.req.raw, {
      project: await findJobProject(context, id),
      sha256,
      // Also where another job stored the same content before, a worker has to send it as a proof.
      isOffered: await records.jobBlobs.has(id, sha256),
      storeBody: (body, options) => blobs.write(body, { ...options, expectedSha256: sha256 }),
      record: (stored) => records.jobBlobs.add(id, stored),
    });
    return c.json(blob, status);
  });
}

/** @throws ServiceError unauthorized */
async function authenticateWorker(context: ServerContext, request: Request, id: string) {
  const worker = await context.executor.workers.authenticate(readBearerToken(request), id);
  return requireWorkingWorker(context, id, worker);
}

/** @throws ServiceError not_found */
function parseSha256(text: string): string {
  const { success, data } = sha256Schema.safeParse(text);
  if (!success) throw notFoundError("file", text);
  return data;
}
