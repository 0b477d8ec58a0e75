import { ServiceError } from "../contract/errors.ts";
import { parseContentRange } from "./parse-content-range.ts";
import { readMediaType } from "./read-media-type.ts";
import type { RouteHandlers } from "./route-handlers.ts";
import { storeUpload } from "./store-upload.ts";

export const modelHandlers: Pick<RouteHandlers, "findModel" | "uploadModel"> = {
  async findModel({ blobs }, { params: { sha256 }, caller }) {
    // Before the complete model is searched for: this waits for uploads that are about to end.
    const partial = await blobs.findPartial({ sha256, owner: caller.project });
    const model = await blobs.find(sha256);
    if (model) return { status: 200, headers: { "content-length": String(model.bytes) } };
    const headers = partial === undefined ? {} : { "upload-offset": String(partial.bytes) };
    throw new ServiceError("not_found", `There is no model "${sha256}"`, { headers });
  },

  async uploadModel(context, { params: { sha256 }, headers, caller, request }) {
    requireBinary(request);
    const { blobs, limits } = context;
    const range = headers["content-range"];
    const offset = range === undefined ? 0 : parseContentRange(range, limits.maxModelBytes);
    const upload = { sha256, owner: caller.project };
    const { status, blob } = await storeUpload(context, request, {
      sha256,
      storeBody: (body, options) => blobs.receive(upload, body, { ...options, offset }),
    });
    return { status, json: { source: `upload:sha256:${blob.sha256}`, ...blob } };
  },
};

/** @throws ServiceError unsupported_media_type */
function requireBinary(request: Request): void {
  const type = readMediaType(request);
  if (type === "" || type === "application/octet-stream") return;
  const message = `Content-Type is "${type}" and must be "application/octet-stream"`;
  throw new ServiceError("unsupported_media_type", message);
}
