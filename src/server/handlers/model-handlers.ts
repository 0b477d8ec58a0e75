import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import type { Caller } from "../../auth/authenticate.ts";
import { ServiceError } from "../../contract/errors.ts";
import type { ModelFile } from "../../contract/models/manifest.ts";
import { uploadSource } from "../../contract/models/model-source.ts";
import { reachedOrigin } from "../../contract/people/may.ts";
import { redactSource } from "../../contract/text/redact-source.ts";
import { creationOwner } from "../../contract/people/principal.ts";
import type { Records } from "../../records/open-records.ts";
import type { Blob, ReceiveOptions, Upload } from "../../storage/blob-store.ts";
import type { RouteHandlers } from "../http/bind-routes.ts";
import { validationError } from "../http/field-errors.ts";
import { checkDeclaredLength, readBody, readDeclaredLength } from "../http/read-request.ts";
import type { ServerContext } from "../http/server-context.ts";

type ModelHandlers = Pick<
  RouteHandlers,
  | "listModels"
  | "listModelVersions"
  | "findModel"
  | "uploadModel"
  | "deleteModel"
  | "createManifest"
>;

export const modelHandlers: ModelHandlers = {
  async listModels({ records }, { caller, query }) {
    return { status: 200, json: await records.models.list(caller.project, query) };
  },

  async listModelVersions({ records }, { caller }) {
    const origin = reachedOrigin(caller, "readWork");
    const versions = await records.jobs.listModelVersions(caller.project, origin);
    // Signed addresses of one file differ in what is left out.
    const shown = versions.map(({ source, ...rest }) => ({
      ...rest,
      source: redactSource(source),
    }));
    return { status: 200, json: { versions: shown } };
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
    const content = Buffer.from(JSON.stringify(body));
    const sha256 = createHash("sha256").update(content).digest("hex");
    const files = await records.manifests.findFiles(owner, body, sha256);
    checkModelBytes(files, limits.maxModelBytes);
    const isKnown = await records.projectBlobs.has(blobSearch(caller, sha256));
    using _room = await quotas.storage.begin(caller.project, {
      bytes: isKnown ? 0 : content.length,
    });
    const blob = await blobs.write(Readable.from([content]), { expectedSha256: sha256 });
    await recordBlob(records, blob, () => records.manifests.add(owner, body, { ...blob, audit }));
    return { status: isKnown ? 200 : 201, json: { source: uploadSource(sha256), ...blob } };
  },
};

/** @throws ServiceError model_too_large */
function checkModelBytes(files: readonly ModelFile[], maxModelBytes: number): void {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  if (bytes <= maxModelBytes) return;
  const message = `The files have ${bytes} bytes; at most ${maxModelBytes} are allowed`;
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

/**
 * The first byte that a Content-Range header of the contract's form names.
 * @throws ServiceError validation_failed where its last byte is not the file's, payload_too_large
 * where the file has more than `maxBytes`
 */
function parseContentRange(header: string, maxBytes: number): number {
  const [first = 0, last = 0, size = 0] = (header.match(/\d+/g) ?? []).map(Number);
  if (first > last || last !== size - 1) {
    const expected = `bytes FIRST-${size - 1}/${size}`;
    const message = `Is "${header}" and must go to the last byte: "${expected}"`;
    throw validationError([{ pointer: "header/content-range", message }]);
  }
  if (size > maxBytes) {
    const message = `The model has ${size} bytes; at most ${maxBytes} are allowed`;
    throw new ServiceError("payload_too_large", message);
  }
  return first;
}

interface StoreUploadOptions {
  /** Whose quota the blob counts in. */
  readonly project: string;
  readonly sha256: string;
  /** Bytes of an interrupted upload that the body continues. */
  readonly offset?: number;
  /** Whether the sender may know of the blob where it is stored already. */
  readonly isOffered: boolean;
  readonly storeBody: (body: AsyncIterable<Uint8Array>, options: ReceiveOptions) => Promise<Blob>;
  /** Records whose the stored blob is, also again: it is kept from then on. */
  readonly record: (blob: Blob) => Promise<void>;
}

/**
 * Stores a request's body as the blob of a hash.
 * @returns status 200 where the blob was stored before
 * @throws ServiceError payload_too_large, too_many_bytes
 */
export async function storeUpload(
  {
    records,
    blobs,
    limits,
    quotas,
  }: Pick<ServerContext, "records" | "blobs" | "limits" | "quotas">,
  request: Request,
  { project, sha256, offset = 0, isOffered, storeBody, record }: StoreUploadOptions,
): Promise<{ status: 200 | 201; blob: Blob }> {
  checkDeclaredLength(request, limits.maxModelBytes);
  const present = isOffered ? await blobs.find(sha256) : undefined;
  if (present) {
    const blob = { sha256, bytes: present.bytes };
    await record(blob);
    return { status: 200, blob };
  }
  using transfer = await quotas.storage.begin(project, {
    bytes: readDeclaredLength(request),
    offset,
  });
  const options = { maxBytes: limits.maxModelBytes, signal: request.signal };
  const blob = await storeBody(transfer.meter(readBody(request)), options);
  await recordBlob(records, blob, () => record(blob));
  return { status: 201, blob };
}

/** Records whose a stored blob is; has it deleted later where that fails. */
export async function recordBlob(
  { releasedBlobs }: Pick<Records, "releasedBlobs">,
  { sha256 }: Blob,
  record: () => Promise<void>,
): Promise<void> {
  try {
    await record();
  } catch (error) {
    // Where nothing can be written, the sender is asked to try again.
    await releasedBlobs.add(sha256).catch(() => {});
    throw error;
  }
}
