import type { DirectTransfers } from "../blob-store.ts";
import { blobKey } from "./blob-key.ts";
import { incomingFolder } from "./incoming-uploads.ts";
import { checksumHeaders, copyObject, findObject, removeObjects } from "./objects.ts";
import { presignRequest } from "./presign-request.ts";
import type { S3Access } from "./s3-address.ts";
import type { S3Client } from "./s3-client.ts";

/** Largest object of one request. */
const maxDirectBytes = 5 * 1024 ** 3;
/** A request that has begun goes on: an address is asked for again where a connection breaks. */
const addressSeconds = 900;

/**
 * Presigned requests. The server verifies the hash of what it is sent, below a key of the sender:
 * knowing a blob's hash is no proof of having it.
 */
export function createDirectTransfers(
  client: S3Client,
  access: S3Access,
  { verifiesSha256 }: { readonly verifiesSha256: boolean },
): DirectTransfers {
  return {
    findAddress: (sha256) =>
      presignRequest(access, { method: "GET", key: blobKey(sha256), seconds: addressSeconds }),
    async prepare(sender, { sha256, bytes }) {
      if (!verifiesSha256 || bytes > maxDirectBytes) return undefined;
      const headers = checksumHeaders(sha256);
      const key = directKey(sender, sha256);
      const put = { method: "PUT", key, headers, seconds: addressSeconds } as const;
      const url = await presignRequest(access, put);
      return { url, headers };
    },
    async findSent(sender, sha256) {
      const key = directKey(sender, sha256);
      const found = await findObject(client, key);
      if (found?.sha256 !== sha256) return undefined;
      const { bytes } = found;
      return {
        bytes,
        accept: async () => copyObject(client, { from: key, to: blobKey(sha256) }),
        discard: async () => removeObjects(client, [key]),
      };
    },
  };
}

function directKey(sender: string, sha256: string): string {
  return `${incomingFolder(`.${sender}.${sha256}`)}content`;
}
