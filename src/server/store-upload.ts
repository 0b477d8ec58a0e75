import type { Blob, ReceiveOptions } from "../storage/blob-store.ts";
import { checkDeclaredLength, readBody } from "./read-bounded-body.ts";
import type { ServerContext } from "./server-context.ts";

interface StoreUploadOptions {
  readonly sha256: string;
  /** Whether the sender may know of the blob where it is stored already. */
  readonly isOffered: boolean;
  readonly storeBody: (body: AsyncIterable<Uint8Array>, options: ReceiveOptions) => Promise<Blob>;
}

/**
 * Stores a request's body as the blob of a hash.
 * @returns status 200 where the blob was stored before
 * @throws ServiceError payload_too_large
 */
export async function storeUpload(
  { blobs, limits }: Pick<ServerContext, "blobs" | "limits">,
  request: Request,
  { sha256, isOffered, storeBody }: StoreUploadOptions,
): Promise<{ status: 200 | 201; blob: Blob }> {
  checkDeclaredLength(request, limits.maxModelBytes);
  const present = isOffered ? await blobs.find(sha256) : undefined;
  if (present) return { status: 200, blob: { sha256, bytes: present.bytes } };
  const options = { maxBytes: limits.maxModelBytes, signal: request.signal };
  return { status: 201, blob: await storeBody(readBody(request), options) };
}
