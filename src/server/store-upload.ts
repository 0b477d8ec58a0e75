import { type Blob } from "../storage/blob-store.ts";
import { refuseDeclaredLength } from "./read-request.ts";
import type { ServerContext } from "./server-context.ts";

/** Stores a request's body as the blob of the given hash; 200 where it was stored already. */
export async function storeUpload(
  { blobs, limits }: Pick<ServerContext, "blobs" | "limits">,
  sha256: string,
  request: Request,
): Promise<{ status: 200 | 201; blob: Blob }> {
  refuseDeclaredLength(request, limits.maxModelBytes);
  const present = await blobs.find(sha256);
  if (present) return { status: 200, blob: { sha256, bytes: present.bytes } };
  const options = { expectedSha256: sha256, maxBytes: limits.maxModelBytes, signal: request.signal };
  return { status: 201, blob: await blobs.write(request.body ?? noBytes(), options) };
}

async function* noBytes(): AsyncGenerator<Uint8Array> {}
