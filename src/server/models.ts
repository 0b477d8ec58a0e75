import { ServiceError } from "../contract/errors.ts";
import { notFound } from "./not-found.ts";
import { mediaTypeOf } from "./read-request.ts";
import type { Handlers } from "./route-handler.ts";
import type { ServerContext } from "./server-context.ts";
import { storeUpload } from "./store-upload.ts";

export function modelHandlers(context: ServerContext): Pick<Handlers, "findModel" | "uploadModel"> {
  return {
    async findModel({ params }) {
      const found = await context.blobs.find(params.sha256);
      if (!found) throw notFound("model", params.sha256);
      return { status: 200, headers: { "content-length": String(found.bytes) } };
    },

    async uploadModel({ params, request }) {
      const type = mediaTypeOf(request);
      if (type !== "" && type !== "application/octet-stream") {
        const message = `Content-Type is "${type}" and must be "application/octet-stream"`;
        throw new ServiceError("unsupported_media_type", message);
      }
      const { status, blob } = await storeUpload(context, params.sha256, request);
      return { status, json: { source: `upload:sha256:${blob.sha256}`, ...blob } };
    },
  };
}
