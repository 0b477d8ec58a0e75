import { blobResponse } from "./blob-response.ts";
import { notFoundError } from "./not-found-error.ts";
import type { RouteHandlers } from "./route-handlers.ts";
import type { ServerContext } from "./server-context.ts";

export function artifactHandlers({
  records,
  blobs,
}: ServerContext): Pick<RouteHandlers, "listArtifacts" | "getArtifact"> {
  return {
    async listArtifacts({ caller, params }) {
      const job = await records.jobs.find(caller.project, params.id);
      if (!job) throw notFoundError("job", params.id);
      return { status: 200, json: { artifacts: job.artifacts } };
    },

    async getArtifact({ caller, params, headers }) {
      const job = await records.jobs.find(caller.project, params.id);
      const artifact = job?.artifacts.find(({ name }) => name === params.name);
      if (!artifact) throw notFoundError(`artifact of job "${params.id}"`, params.name);
      const { sha256, bytes, name } = artifact;
      const etag = `"${sha256}"`;
      if (isETagMatch(headers["if-none-match"], etag)) return { status: 304, headers: { etag } };
      const file = {
        etag,
        "accept-ranges": "bytes",
        "content-disposition": `attachment; filename="${name}"`,
      };
      const isRangeCurrent = (headers["if-range"] ?? etag) === etag;
      const answer = blobResponse(
        blobs,
        { sha256, bytes },
        isRangeCurrent ? headers.range : undefined,
      );
      return { ...answer, headers: { ...file, ...answer.headers } };
    },
  };
}

function isETagMatch(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = (ifNoneMatch ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes(etag) || tags.includes("*");
}
