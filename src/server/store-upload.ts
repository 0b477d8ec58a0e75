import type { Blob, ReceiveOptions } from "../storage/blob-store.ts";
import { checkDeclaredLength, readBody, readDeclaredLength } from "./read-bounded-body.ts";
import type { ServerContext } from "./server-context.ts";

interface StoreUploadOptions {
  /** Whose quota the blob counts in. */
  readonly project: string;
  readonly sha256: string;
  /** Bytes of an interrupted upload that the body continues. */
  readonly offset?: number;
  /** Whether the sender may know of the blob where it is stored already. */
  readonly isOffered: boolean;
  readonly storeBody: (body: AsyncIterable<Uint8Array>, options: ReceiveOptions) => Promise<Blob>;
  /** Records whose the stored blob is. */
  readonly record: (blob: Blob) => Promise<void>;
}

/**
 * Stores a request's body as the blob of a hash.
 * @returns status 200 where the blob was stored before
 * @throws ServiceError payload_too_large, too_many_bytes
 */
export async function storeUpload(
  { blobs, limits, quotas }: Pick<ServerContext, "blobs" | "limits" | "quotas">,
  request: Request,
  { project, sha256, offset = 0, isOffered, storeBody, record }: StoreUploadOptions,
): Promise<{ status: 200 | 201; blob: Blob }> {
  checkDeclaredLength(request, limits.maxModelBytes);
  const present = isOffered ? await blobs.find(sha256) : undefined;
  if (present) return { status: 200, blob: { sha256, bytes: present.bytes } };
  using transfer = await quotas.storage.begin(project, {
    bytes: readDeclaredLength(request),
    offset,
  });
  const options = { maxBytes: limits.maxModelBytes, signal: request.signal };
  const blob = await storeBody(transfer.meter(readBody(request)), options);
  await record(blob);
  return { status: 201, blob };
}
