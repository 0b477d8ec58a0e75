import { createReadStream } from "node:fs";
import { open, rm, stat } from "node:fs/promises";
import { z } from "zod";
import { sha256 as sha256Schema } from "../contract/model.ts";
import type { Blob, BlobFiles } from "./blob-store.ts";
import { downloadBlob } from "./download-blob.ts";
import { downloadRange } from "./download-range.ts";
import { storageError } from "./file-error.ts";
import { hashStoredFile } from "./hash-stored-file.ts";
import type { RequestService } from "./service-request.ts";

const readBytes = 1 << 20;
const storedBlob = z.object({ sha256: sha256Schema, bytes: z.int() });

interface UploadOptions {
  readonly expectedSha256?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The service's store, for workers that do not share a disk with it. */
export function createServiceBlobStore(requestService: RequestService): BlobFiles {
  return {
    find: (sha256) => findBlob(requestService, sha256),

    async materialize(sha256, path, signal) {
      try {
        await using file = await open(path, "wx");
        await downloadBlob(file, sha256, { requestService, signal });
      } catch (error) {
        await rm(path, { force: true });
        throw storageError(error);
      }
    },

    async materializeRanges(sha256, path, { ranges, signal }) {
      await using file = await open(path, "r+");
      for (const range of ranges) {
        await downloadRange(file, sha256, { range, requestService, signal });
      }
    },

    writeFile: (path, options = {}) => storeFile(requestService, path, options),
  };
}

async function findBlob(requestService: RequestService, sha256: string) {
  return requestService({
    method: "HEAD",
    path: `/blobs/${sha256}`,
    statuses: [200, 404],
    async readAnswer({ statusCode, headers, body }) {
      await body.dump();
      if (statusCode === 404) return undefined;
      return { bytes: z.coerce.number().int().parse(headers["content-length"]) };
    },
  });
}

async function storeFile(
  requestService: RequestService,
  path: string,
  { expectedSha256, signal }: UploadOptions,
): Promise<Blob> {
  const sha256 = expectedSha256 ?? (await hashStoredFile(path, { signal })).sha256;
  const { size: bytes } = await stat(path);
  const blob = { sha256, bytes };
  if ((await findBlob(requestService, sha256)) !== undefined) return blob;
  const stored = await requestService({
    method: "PUT",
    path: `/blobs/${sha256}`,
    headers: () => ({
      "content-type": "application/octet-stream",
      "content-length": String(bytes),
    }),
    body: () => createReadStream(path, { highWaterMark: readBytes }),
    statuses: [200, 201],
    signal,
    readAnswer: async ({ body }) => storedBlob.parse(await body.json()),
  });
  checkStoredBlob(stored, blob);
  return blob;
}

function checkStoredBlob(stored: Blob, sent: Blob): void {
  if (stored.sha256 === sent.sha256 && stored.bytes === sent.bytes) return;
  const received = `The service stored ${stored.bytes} bytes as ${stored.sha256}`;
  throw new Error(`${received}, and was sent ${sent.bytes} as ${sent.sha256}`);
}
