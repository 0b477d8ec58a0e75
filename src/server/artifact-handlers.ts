import { invalidTokenError } from "../auth/authenticate.ts";
import { artifactResponse } from "./artifact-response.ts";
import { writeBatchArchive } from "./batch-archive.ts";
import { createByteStream } from "./create-byte-stream.ts";
import { mayStillCall } from "./may-still-call.ts";
import { notFoundError } from "./not-found-error.ts";
import { requireJob } from "./require-job.ts";
import type { RouteHandlers } from "./route-handlers.ts";

type ArtifactHandlers = Pick<RouteHandlers, "listArtifacts" | "getArtifact" | "getBatchArtifacts">;

export const artifactHandlers: ArtifactHandlers = {
  async listArtifacts({ records }, { caller, params }) {
    const { artifacts } = await requireJob(records, caller, params.id);
    return { status: 200, json: { artifacts } };
  },

  async getArtifact({ records, blobs }, { caller, params, headers }) {
    const job = await records.jobs.find(caller.project, params.id);
    const artifact = job?.artifacts.find(({ name }) => name === params.name);
    if (!artifact) throw notFoundError("artifact", params.name, `of job "${params.id}"`);
    return artifactResponse(blobs, artifact, headers);
  },

  async getBatchArtifacts(context, { caller, params: { id }, request }) {
    const { records, blobs } = context;
    const jobs = await records.batches.listArtifacts(caller.project, id);
    const stream = createByteStream({
      write: () => writeBatchArchive(blobs, id, jobs),
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
