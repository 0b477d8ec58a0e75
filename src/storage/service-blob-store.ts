import { createReadStream } from "node:fs";
import { open, rm, stat } from "node:fs/promises";
import { z } from "zod";
import { sha256 as sha256Schema } from "../contract/models/model.ts";
import { type UploadAnswer, uploadAnswer } from "../contract/jobs/worker-transfers.ts";
import type { Blob, BlobFiles } from "./blob-store.ts";
import { requestDirectly } from "./direct-request.ts";
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
  const file = { path, blob: { sha256, bytes }, signal };
  const to = await sendToStorage(requestService, file);
  if (to === "nobody") return file.blob;
  const sent = to === "service" ? putRequest(file) : confirmRequest(file);
  const stored = await requestService({
    ...sent,
    signal,
    readAnswer: async ({ body }) => storedBlob.parse(await body.json()),
  });
  checkStoredBlob(stored, file.blob);
  return file.blob;
}

interface SentFile {
  readonly path: string;
  readonly blob: Blob;
  readonly signal: AbortSignal | undefined;
}

/** Asks whom to send a file to, and sends it where that is not the service. */
async function sendToStorage(
  requestService: RequestService,
  { path, blob: { sha256, bytes }, signal }: SentFile,
): Promise<UploadAnswer["to"]> {
  return requestService({
    method: "POST",
    path: `/blobs/${sha256}/upload`,
    headers: () => ({ "content-type": "application/json" }),
    body: () => JSON.stringify({ bytes }),
    statuses: [200],
    signal,
    async readAnswer({ body }) {
      const answer = uploadAnswer.parse(await body.json());
      if (answer.to !== "storage") return answer.to;
      const stored = await requestDirectly(answer.url, {
        method: "PUT",
        headers: { ...answer.headers, "content-length": String(bytes) },
        body: createReadStream(path, { highWaterMark: readBytes }),
        statuses: [200],
        signal,
      });
      await stored.body.dump();
      return answer.to;
    },
  });
}

function putRequest({ path, blob: { sha256, bytes } }: SentFile) {
  return {
    method: "PUT",
    path: `/blobs/${sha256}`,
    headers: () => ({
      "content-type": "application/octet-stream",
      "content-length": String(bytes),
    }),
    body: () => createReadStream(path, { highWaterMark: readBytes }),
    statuses: [200, 201],
  } as const;
}

function confirmRequest({ blob: { sha256 } }: SentFile) {
  return { method: "POST", path: `/blobs/${sha256}/stored`, statuses: [200] } as const;
}

function checkStoredBlob(stored: Blob, sent: Blob): void {
  if (stored.sha256 === sent.sha256 && stored.bytes === sent.bytes) return;
  const received = `The service stored ${stored.bytes} bytes as ${stored.sha256}`;
  throw new Error(`${received}, and was sent ${sent.bytes} as ${sent.sha256}`);
}
