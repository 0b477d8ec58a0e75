import { writeBatchArchive } from "./batch-archive.ts";
import { mayStillCall } from "./may-still-call.ts";
import { requireJob } from "./require-job.ts";
import { requireStored } from "./require-stored.ts";
import { invalidTokenError } from "../../auth/authenticate.ts";
import type { Artifact } from "../../contract/jobs/artifact.ts";
import type { ProducingJob } from "../../records/jobs/batch-records.ts";
import type { RouteHandlers } from "../http/bind-routes.ts";
import { blobResponse } from "../http/blob-response.ts";
import { isETagMatch } from "../http/build-response.ts";
import { createByteStream } from "../http/byte-stream.ts";
import type { ServerContext } from "../http/server-context.ts";
import { notFoundError } from "../http/problem-response.ts";

type ArtifactHandlers = Pick<RouteHandlers, "listArtifacts" | "getArtifact" | "getBatchArtifacts">;

export const artifactHandlers: ArtifactHandlers = {
  async listArtifacts({ records }, { caller, params }) {
    const { artifacts } = await requireJob(records, caller, params.id);
    return { status: 200, json: { artifacts } };
  },

  async getArtifact(context, { caller, params, headers }) {
    const job = await context.records.jobs.find(caller.project, params.id);
    const artifact = job?.artifacts.find(({ name }) => name === params.name);
    if (!artifact) throw notFoundError("artifact", params.name, `of job "${params.id}"`);
    return artifactResponse(context, { ...artifact, jobId: params.id }, headers);
  },

  async getBatchArtifacts(context, { caller, params: { id }, request }) {
    const { records, blobs } = context;
    const readJobs = (signal: AbortSignal) =>
      records.batches.readProducing(caller.project, id, signal);
    for await (const job of readJobs(request.signal)) await requireStored(context, listNamed(job));
    const stream = createByteStream({
      write: (signal) => writeBatchArchive(blobs, id, () => readJobs(signal)),
      // An archive that only ended would look whole.
      async isAllowed() {
        if (await mayStillCall(context, { caller, request })) return true;
        throw invalidTokenError("The access token is no longer valid");
      },
    });
    const headers = { "content-disposition": `attachment; filename="${id}.tar"` };
    return { status: 200, stream, mediaType: "application/x-tar", headers };
  },
};

function listNamed({ id: jobId, artifacts }: ProducingJob) {
  return artifacts.map(({ name, sha256 }) => ({ jobId, name, sha256 }));
}

/** @throws ServiceError range_not_satisfiable, artifact_missing */
export async function artifactResponse(
  context: Pick<ServerContext, "blobs" | "metrics" | "log">,
  { jobId, sha256, bytes, name }: Artifact & { readonly jobId: string },
  headers: { readonly [Name in "range" | "if-none-match" | "if-range"]?: string | undefined },
) {
  const etag = `"${sha256}"`;
  if (isETagMatch(headers["if-none-match"], etag)) {
    return { status: 304 as const, headers: { etag } };
  }
  const isRangeCurrent = (headers["if-range"] ?? etag) === etag;
  const range = isRangeCurrent ? headers.range : undefined;
  await requireStored(context, [{ jobId, name, sha256 }]);
  const response = blobResponse(context.blobs, { sha256, bytes }, range);
  const fileHeaders = {
    etag,
    "accept-ranges": "bytes",
    "content-disposition": `attachment; filename="${name}"`,
  };
  return { ...response, headers: { ...fileHeaders, ...response.headers } };
}
