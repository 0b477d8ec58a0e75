import { ServiceError } from "../contract/errors.ts";
import { notFound } from "./not-found.ts";
import { mediaTypeOf, refuseDeclaredLength } from "./read-request.ts";
import type { Handlers } from "./route-handler.ts";
import type { ServerContext } from "./server-context.ts";

export function modelHandlers({ blobs, limits }: ServerContext): Pick<Handlers, "findModel" | "uploadModel"> {
  return {
    async findModel({ params }) {
      const found = await blobs.find(params.sha256);
      if (!found) throw notFound("model", params.sha256);
      return { status: 200, headers: { "content-length": String(found.bytes) } };
    },

    async uploadModel({ params, request }) {
      const { sha256 } = params;
      const type = mediaTypeOf(request);
      if (type !== "" && type !== "application/octet-stream") {
        const message = `Content-Type is "${type}" and must be "application/octet-stream"`;
        throw new ServiceError("unsupported_media_type", message);
      }
      refuseDeclaredLength(request, limits.maxModelBytes);
      const source = `upload:sha256:${sha256}`;
      const present = await blobs.find(sha256);
      if (present) return { status: 200, json: { source, sha256, bytes: present.bytes } };
      const { bytes } = await blobs.write(request.body ?? noBytes(), {
        expectedSha256: sha256,
        maxBytes: limits.maxModelBytes,
        signal: request.signal,
      });
      return { status: 201, json: { source, sha256, bytes } };
    },
  };
}

async function* noBytes(): AsyncGenerator<Uint8Array> {}
