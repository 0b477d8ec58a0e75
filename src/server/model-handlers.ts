import { ServiceError } from "../contract/errors.ts";
import { parseContentRange } from "./parse-content-range.ts";
import { readMediaType } from "./read-request.ts";
import type { RouteHandlers } from "./route-handlers.ts";
import type { ServerContext } from "./server-context.ts";
import { storeUpload } from "./store-upload.ts";

export function modelHandlers(
  context: ServerContext,
): Pick<RouteHandlers, "findModel" | "uploadModel"> {
  const { blobs, limits } = context;
  return {
    async findModel({ params: { sha256 }, caller }) {
      // Before the search for the whole: it waits for uploads that are about to end.
      const partial = await blobs.findPartial({ sha256, owner: caller.project });
      const found = await blobs.find(sha256);
      if (found) return { status: 200, headers: { "content-length": String(found.bytes) } };
      throw new ServiceError("not_found", `There is no model "${sha256}"`, {
        headers: { ...(partial && { "upload-offset": String(partial.bytes) }) },
      });
    },

    async uploadModel({ params: { sha256 }, headers, caller, request }) {
      const type = readMediaType(request);
      if (type !== "" && type !== "application/octet-stream") {
        const message = `Content-Type is "${type}" and must be "application/octet-stream"`;
        throw new ServiceError("unsupported_media_type", message);
      }
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
}
