import { parseByteRange } from "./byte-range.ts";
import { notFound } from "./not-found.ts";
import type { Handlers } from "./route-handler.ts";
import type { ServerContext } from "./server-context.ts";

export function artifactHandlers({ records, blobs }: ServerContext): Pick<Handlers, "listArtifacts" | "getArtifact"> {
  return {
    async listArtifacts({ caller, params }) {
      const job = await records.jobs.find(caller.project, params.id);
      if (!job) throw notFound("job", params.id);
      return { status: 200, json: { artifacts: job.artifacts } };
    },

    async getArtifact({ caller, params, headers }) {
      const job = await records.jobs.find(caller.project, params.id);
      const artifact = job?.artifacts.find(({ name }) => name === params.name);
      if (!artifact) throw notFound(`artifact of job "${params.id}"`, params.name);
      const { sha256, bytes, name } = artifact;
      const etag = `"${sha256}"`;
      if (matches(headers["if-none-match"], etag)) return { status: 304, headers: { etag } };
      const file = {
        etag,
        "accept-ranges": "bytes",
        "content-disposition": `attachment; filename="${name}"`,
      };
      const partWanted = (headers["if-range"] ?? etag) === etag;
      const range = headers.range !== undefined && partWanted ? parseByteRange(headers.range, bytes) : undefined;
      if (range === undefined) {
        const stream = blobs.read(sha256);
        return {
          status: 200,
          stream,
          mediaType: "application/octet-stream",
          headers: { ...file, "content-length": String(bytes) },
        };
      }
      return {
        status: 206,
        stream: blobs.read(sha256, range),
        mediaType: "application/octet-stream",
        headers: {
          ...file,
          "content-length": String(range.end - range.start + 1),
          "content-range": `bytes ${range.start}-${range.end}/${bytes}`,
        },
      };
    },
  };
}

function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = (ifNoneMatch ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes(etag) || tags.includes("*");
}
