import type { Hono } from "hono";
import { invalidTokenError } from "../../auth/authenticate.ts";
import { limits } from "../../contract/limits.ts";
import { sha256 as sha256Schema } from "../../contract/models/model.ts";
import {
  assignedBlobs,
  type UploadAnswer,
  uploadQuestion,
} from "../../contract/worker-protocol/transfers.ts";
import type { Blob } from "../../storage/blob-store.ts";
import { checkContentSize } from "../../storage/receive-file.ts";
import { blobResponse } from "../http/blob-response.ts";
import { buildResponse } from "../http/build-response.ts";
import { notFoundError } from "../http/problem-response.ts";
import { parseBody, readJson } from "../http/read-request.ts";
import type { ServerContext } from "../http/server-context.ts";
import { recordBlob, storeUpload } from "../handlers/model-handlers.ts";
import { authenticateWorker, findJobProject } from "./worker-access.ts";

/**
 * Files of workers while their attempt runs: what those that share no disk with the service read,
 * named by their assignment or stored by their job, and what all workers store.
 */
export function bindWorkerBlobs(app: Hono, context: ServerContext): void {
  const path = "/worker/v1/jobs/:id/blobs/:sha256";
  app.get(path, async (c) => {
    const { raw } = c.req;
    const [id, sha256] = [c.req.param("id"), parseSha256(c.req.param("sha256"))];
    const { attempt } = await authenticateWorking(context, raw, id);
    const isReadable = await mayRead(context, id, attempt, sha256);
    const blob = isReadable ? await context.blobs.find(sha256) : undefined;
    if (blob === undefined) throw notFoundError("file", sha256);
    if (raw.method === "HEAD") return c.body(null, 200, { "content-length": String(blob.bytes) });
    const address = await context.blobs.direct?.findAddress(sha256);
    if (address !== undefined) return c.redirect(address, 307);
    const range = raw.headers.get("range") ?? undefined;
    return buildResponse(blobResponse(context.blobs, { sha256, ...blob }, range));
  });
  app.put(path, async (c) => {
    const [id, sha256] = [c.req.param("id"), parseSha256(c.req.param("sha256"))];
    await authenticateWorking(context, c.req.raw, id);
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
  app.post(`${path}/upload`, async (c) => {
    const [id, sha256] = [c.req.param("id"), parseSha256(c.req.param("sha256"))];
    await authenticateWorking(context, c.req.raw, id);
    using held = context.quotas.bodies.ofWorker(id);
    const body = await readJson(c.req.raw, limits.workerBodyBytes, held);
    const { bytes } = parseBody(uploadQuestion, body);
    return c.json(await answerUpload(context, id, { sha256, bytes }));
  });
  app.post(`${path}/stored`, async (c) => {
    const [id, sha256] = [c.req.param("id"), parseSha256(c.req.param("sha256"))];
    await authenticateWorking(context, c.req.raw, id);
    return c.json(await acceptUpload(context, id, sha256));
  });
}

/**
 * How a worker sends a file, for which its project has room. Also where another job stored the
 * same content before, a worker has to send it as a proof.
 */
async function answerUpload(
  context: ServerContext,
  jobId: string,
  content: Blob,
): Promise<UploadAnswer> {
  const { records, blobs, quotas } = context;
  checkContentSize(content.bytes, context.limits.maxModelBytes);
  const isOwn = await records.jobBlobs.has(jobId, content.sha256);
  if (isOwn && (await blobs.find(content.sha256))) return { to: "nobody" };
  using _room = await quotas.storage.begin(await findJobProject(context, jobId), content);
  const direct = await blobs.direct?.prepare(jobId, content);
  return direct ? { to: "storage", ...direct } : { to: "service" };
}

/**
 * Makes what a worker sent past the service a blob of its job; a no-op where it is one.
 * @throws ServiceError not_found, payload_too_large, too_many_bytes
 */
async function acceptUpload(context: ServerContext, jobId: string, sha256: string): Promise<Blob> {
  const { records, blobs, quotas } = context;
  const isOwn = await records.jobBlobs.has(jobId, sha256);
  const known = isOwn ? await blobs.find(sha256) : undefined;
  if (known !== undefined) return { sha256, ...known };
  const sent = await blobs.direct?.findSent(jobId, sha256);
  if (sent === undefined) throw notFoundError("file", sha256);
  checkContentSize(sent.bytes, context.limits.maxModelBytes);
  using _room = await quotas.storage.begin(await findJobProject(context, jobId), sent);
  const blob = { sha256, bytes: sent.bytes };
  await sent.accept();
  await recordBlob(records, blob, () => records.jobBlobs.add(jobId, blob));
  await sent.discard();
  return blob;
}

/**
 * The worker of an attempt that has not ended.
 * @throws ServiceError unauthorized, too_many_requests
 */
async function authenticateWorking(context: ServerContext, request: Request, id: string) {
  const worker = await authenticateWorker(context, request, id);
  if (await context.records.workers.isOpen(id, worker.attempt)) return worker;
  throw invalidTokenError(`Attempt ${worker.attempt} at job "${id}" is over`);
}

/** Whether a worker's assignment names a blob, or its job has stored it. */
async function mayRead(
  { records }: ServerContext,
  jobId: string,
  attempt: number,
  sha256: string,
): Promise<boolean> {
  if (await records.jobBlobs.has(jobId, sha256)) return true;
  const assignment = await records.workers.findAssignment(jobId, attempt);
  return assignment !== undefined && assignedBlobs(assignment).has(sha256);
}

/** @throws ServiceError not_found */
function parseSha256(text: string): string {
  const { success, data } = sha256Schema.safeParse(text);
  if (!success) throw notFoundError("file", text);
  return data;
}
