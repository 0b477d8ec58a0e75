import { setTimeout as delay } from "node:timers/promises";
import type { Blob, BlobStore, ReceiveOptions, Upload } from "./blob-store.ts";
import { uploadOffsetError } from "./kept-uploads.ts";
import { partialUploadName } from "./partial-upload-path.ts";

/** How much later than its sender the service may notice a broken connection. */
const noticeMs = 2_000;

export interface UploadContent extends ReceiveOptions {
  readonly source: AsyncIterable<Uint8Array>;
  readonly offset: number;
  /** All uploads that are being received now, by their names. */
  readonly receiving: ReadonlyMap<string, unknown>;
}

/** Where interrupted uploads are kept, each by its name. */
interface PartialUploadOptions {
  /** Bytes that are kept of an upload; undefined for none. */
  findKept(this: void, name: string): Promise<number | undefined>;
  /** Bytes that are kept of a project's uploads which nobody sends at present. */
  countKept(this: void, project: string, receiving: ReadonlyMap<string, unknown>): Promise<number>;
  /** Stores an upload, or keeps what arrived of it. */
  receive(this: void, upload: Upload, content: UploadContent): Promise<Blob>;
  /** Stores content without resumption; leaves nothing behind when it fails. */
  readonly write: BlobStore["write"];
}

interface PartialUploads extends PartialUploadOptions {
  /** Uploads that are being received, each until its promise resolves. */
  readonly receiving: Map<string, Promise<unknown>>;
}

/**
 * Uploads that can be resumed after their sender was lost, one for each hash and owner. Of two
 * requests that send the same, one is kept.
 */
export function createPartialUploads(
  options: PartialUploadOptions,
): Pick<BlobStore, "keptBytes" | "findPartial" | "receive"> {
  const uploads: PartialUploads = { ...options, receiving: new Map() };
  return {
    keptBytes: (project) => options.countKept(project, uploads.receiving),
    findPartial: (upload) => findPartial(uploads, partialUploadName(upload)),
    receive: (upload, source, receiveOptions = {}) =>
      receiveUpload(uploads, upload, { source, ...receiveOptions }),
  };
}

async function findPartial(
  { findKept, receiving }: PartialUploads,
  name: string,
): Promise<{ bytes: number } | undefined> {
  const ended = receiving.get(name);
  if (ended) await Promise.race([ended, delay(noticeMs, undefined, { ref: false })]);
  if (receiving.has(name)) return undefined;
  const bytes = await findKept(name);
  return bytes === undefined ? undefined : { bytes };
}

async function receiveUpload(
  { receive, receiving, write }: PartialUploads,
  upload: Upload,
  content: Pick<UploadContent, "source"> & ReceiveOptions,
): Promise<Blob> {
  const { source, offset = 0, ...options } = content;
  const name = partialUploadName(upload);
  if (receiving.has(name)) {
    if (offset === 0) return write(source, { ...options, expectedSha256: upload.sha256 });
    const reason = "while another request sends it: only from 0";
    throw uploadOffsetError(`The upload cannot go on at byte ${offset} ${reason}`, 0);
  }
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  receiving.set(name, ended);
  try {
    return await receive(upload, { ...options, source, offset, receiving });
  } finally {
    receiving.delete(name);
    end();
  }
}
