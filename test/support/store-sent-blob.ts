import type { IncomingMessage, ServerResponse } from "node:http";
import { isStorageFailure } from "../../src/storage/file-error.ts";
import type { BlobStore } from "../../src/storage/blob-store.ts";

/** Answers a worker that sends a file to the service; false where it asks for something else. */
export async function storeSentBlob(
  request: IncomingMessage,
  response: ServerResponse,
  blobs: Pick<BlobStore, "write">,
): Promise<boolean> {
  const [, sha256, question] = /\/blobs\/([0-9a-f]{64})(\/upload)?$/.exec(request.url ?? "") ?? [];
  if (sha256 === undefined) return false;
  const answer = (status: number, body: unknown) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  if (question !== undefined) {
    request.resume();
    answer(200, { to: "service" });
    return true;
  }
  try {
    answer(201, await blobs.write(request, { expectedSha256: sha256 }));
  } catch (error) {
    if (!isStorageFailure(error)) throw error;
    answer(507, {});
  }
  return true;
}
