import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import type { Caller } from "../auth/authenticate.ts";
import { ServiceError } from "../contract/errors.ts";
import type { ModelFile } from "../contract/models/manifest.ts";
import { reachedOrigin } from "../contract/people/may.ts";
import { uploadSource } from "../contract/models/model-source.ts";
import { creationOwner } from "../contract/people/principal.ts";
import { parseContentRange } from "./parse-content-range.ts";
import type { RouteHandlers } from "./route-handlers.ts";
import type { Upload } from "../storage/blob-store.ts";
import { storeUpload } from "./store-upload.ts";

type ModelHandlers = Pick<
  RouteHandlers,
  "listModels" | "findModel" | "uploadModel" | "deleteModel" | "createManifest"
>;

export const modelHandlers: ModelHandlers = {
  async listModels({ records }, { caller, query }) {
    return { status: 200, json: await records.models.list(caller.project, query) };
  },

  async deleteModel({ records }, { caller, params: { sha256 }, audit }) {
    const isDeleted = await records.models.delete(caller.project, sha256, audit);
    if (!isDeleted) throw new ServiceError("not_found", `There is no model "${sha256}"`);
    return { status: 204 };
  },

  async findModel({ records, blobs }, { params: { sha256 }, caller }) {
    // Before the complete model is searched for: this waits for uploads that are about to end.
    const partial = await blobs.findPartial(describeUpload(sha256, caller));
    const search = blobSearch(caller, sha256);
    const model = (await records.projectBlobs.has(search)) && (await blobs.find(sha256));
    if (model) return { status: 200, headers: { "content-length": String(model.bytes) } };
    const headers = partial === undefined ? {} : { "upload-offset": String(partial.bytes) };
    throw new ServiceError("not_found", `There is no model "${sha256}"`, { headers });
  },

  async uploadModel(context, { params: { sha256 }, headers, caller, audit, request }) {
    const { records, blobs, limits } = context;
    const range = headers["content-range"];
    const offset = range === undefined ? 0 : parseContentRange(range, limits.maxModelBytes);
    const upload = describeUpload(sha256, caller);
    const { status, blob } = await storeUpload(context, request, {
      project: caller.project,
      sha256,
      offset,
      isOffered: await records.projectBlobs.has(blobSearch(caller, sha256)),
      storeBody: (body, options) => blobs.receive(upload, body, { ...options, offset }),
      record: (stored) => records.projectBlobs.add(creationOwner(caller), stored, audit),
    });
    return { status, json: { source: uploadSource(blob.sha256), ...blob } };
  },

  async createManifest(context, { caller, body, audit }) {
    const { records, blobs, limits, quotas } = context;
    const owner = creationOwner(caller);
    checkModelBytes(await records.manifests.findFiles(owner, body), limits.maxModelBytes);
    const content = Buffer.from(JSON.stringify(body));
    const sha256 = createHash("sha256").update(content).digest("hex");
    const isKnown = await records.projectBlobs.has(blobSearch(caller, sha256));
    using _room = await quotas.storage.begin(caller.project, {
      bytes: isKnown ? 0 : content.length,
    });
    const blob = await blobs.write(Readable.from([content]), { expectedSha256: sha256 });
    await records.manifests.add(owner, body, { ...blob, audit });
    return { status: isKnown ? 200 : 201, json: { source: uploadSource(sha256), ...blob } };
  },
};

/** @throws ServiceError model_too_large */
function checkModelBytes(files: readonly ModelFile[], maxModelBytes: number): void {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  if (bytes <= maxModelBytes) return;
  const message = `The files have ${bytes} bytes, allowed are ${maxModelBytes}`;
  throw new ServiceError("model_too_large", message);
}

/** Files that others uploaded are not there, so that nobody learns of one by its hash. */
function blobSearch(caller: Caller, sha256: string) {
  const { repository } = reachedOrigin(caller, "uploadModel");
  return { project: caller.project, repository, sha256 };
}

/** Tokens of one repository's workflows continue each other's uploads: each lives for minutes. */
function describeUpload(sha256: string, { project, workflow, id }: Caller): Upload {
  const owner = workflow === null ? id : `repository ${workflow.repositoryId}`;
  return { sha256, project, owner };
}
