import { blobResponse } from "./blob-response.ts";
import { isETagMatch } from "./etag.ts";
import { notFoundError } from "./not-found-error.ts";
import { requireJob } from "./require-job.ts";
import type { RouteHandlers } from "./route-handlers.ts";

export const artifactHandlers: Pick<RouteHandlers, "listArtifacts" | "getArtifact"> = {
  async listArtifacts({ records }, { caller, params }) {
    const { artifacts } = await requireJob(records, caller, params.id);
    return { status: 200, json: { artifacts } };
  },

  async getArtifact({ records, blobs }, { caller, params, headers }) {
    const job = await records.jobs.find(caller.project, params.id);
    const artifact = job?.artifacts.find(({ name }) => name === params.name);
    if (!artifact) throw notFoundError(`artifact of job "${params.id}"`, params.name);
    const { sha256, bytes, name } = artifact;
    const etag = `"${sha256}"`;
    if (isETagMatch(headers["if-none-match"], etag)) return { status: 304, headers: { etag } };
    const isRangeCurrent = (headers["if-range"] ?? etag) === etag;
    const range = isRangeCurrent ? headers.range : undefined;
    const response = blobResponse(blobs, { sha256, bytes }, range);
    const fileHeaders = {
      etag,
      "accept-ranges": "bytes",
      "content-disposition": `attachment; filename="${name}"`,
    };
    return { ...response, headers: { ...fileHeaders, ...response.headers } };
  },
};
