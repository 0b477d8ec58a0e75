import { blobAnswer } from "./blob-answer.ts";
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
      const answer = blobAnswer(blobs, { sha256, bytes }, partWanted ? headers.range : undefined);
      return { ...answer, headers: { ...file, ...answer.headers } };
    },
  };
}

function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = (ifNoneMatch ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes(etag) || tags.includes("*");
}
