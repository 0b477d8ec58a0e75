import type { Readable } from "node:stream";

/** Content of a store, named by the SHA-256 of its bytes. */
export interface Blob {
  readonly sha256: string;
  readonly bytes: number;
}

export interface BlobRange {
  readonly start: number;
  /** Last byte, inclusive. */
  readonly end: number;
}

export interface WriteOptions {
  /** Content with another hash is refused with `model_checksum_mismatch`. */
  readonly expectedSha256?: string | undefined;
  /** More bytes are refused with `payload_too_large`. */
  readonly maxBytes?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Content whose hash is known before it arrives, so that it can arrive in several parts. */
export interface Upload {
  readonly sha256: string;
  /** What is kept of interrupted uploads is bounded for each project. */
  readonly project: string;
  /** Only the owner may continue the upload; others may send the same content meanwhile. */
  readonly owner: string;
}

export interface ReceiveOptions extends Pick<WriteOptions, "maxBytes" | "signal"> {
  /** First byte of the source in the content; by default 0. */
  readonly offset?: number | undefined;
}

interface RangeOptions {
  readonly ranges: readonly BlobRange[];
  readonly signal?: AbortSignal | undefined;
}

/**
 * Uploaded models and artifacts, as workers need them: file by file. A blob is complete and never
 * changes.
 */
export interface BlobFiles {
  find(sha256: string): Promise<{ bytes: number } | undefined>;
  /** Writes the blob to a local file at `path`, which must not exist. */
  materialize(sha256: string, path: string, signal?: AbortSignal): Promise<void>;
  /** Writes parts of the blob to the same places of a local file, which must exist. */
  materializeRanges(sha256: string, path: string, options: RangeOptions): Promise<void>;
  /** Stores a whole local file or leaves nothing behind. */
  writeFile(path: string, options?: Pick<WriteOptions, "expectedSha256" | "signal">): Promise<Blob>;
}

/** How a worker sends a file to where blobs are stored. */
interface DirectUpload {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A file uploaded straight to the bucket. */
interface SentFile {
  readonly bytes: number;
  /** Makes it a blob. */
  accept(this: void): Promise<void>;
  /** Removes it: the blob is a copy. */
  discard(this: void): Promise<void>;
}

/** Transfers between workers and what stores blobs, by addresses that are valid for a while. */
export interface DirectTransfers {
  /** Address at which a GET request reads the blob. */
  findAddress(sha256: string): Promise<string>;
  /** A PUT request; undefined for content that has to be sent to the service. */
  prepare(sender: string, content: Blob): Promise<DirectUpload | undefined>;
  /** Makes what was sent a blob; undefined where the sender has not sent it. */
  findSent(sender: string, sha256: string): Promise<SentFile | undefined>;
}

export interface BlobStore extends BlobFiles {
  /** Absent where workers read and send blobs through the service. */
  readonly direct?: DirectTransfers | undefined;
  /** The stream fails with `ENOENT` if there is no such blob: call `find()` first. */
  read(sha256: string, range?: BlobRange): Readable;
  /** Stores the whole source or leaves nothing behind. */
  write(source: AsyncIterable<Uint8Array>, options?: WriteOptions): Promise<Blob>;
  /** Bytes that are kept of the project's interrupted uploads. */
  keptBytes(project: string): Promise<number>;
  /** How much of an interrupted upload is kept. */
  findPartial(upload: Upload): Promise<{ bytes: number } | undefined>;
  /**
   * Stores an upload. What arrived is kept when the source is interrupted, unless another request
   * sends the same content.
   * @throws ServiceError upload_offset_mismatch where less is kept; payload_too_large or
   * model_checksum_mismatch for the whole content; nothing of it is kept then
   */
  receive(
    upload: Upload,
    source: AsyncIterable<Uint8Array>,
    options?: ReceiveOptions,
  ): Promise<Blob>;
  /** Deletes content that was stored before a time; does nothing if there is none. */
  delete(sha256: string, storedBefore: Date): Promise<void>;
  /** Removes temporary files whose writer has ended. */
  purge(): Promise<void>;
}
