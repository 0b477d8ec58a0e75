import type { Readable } from "node:stream";

/** Content of a store, named by the SHA-256 of its bytes. */
export interface Blob {
  readonly sha256: string;
  readonly bytes: number;
}

interface BlobRange {
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

/** Content that is told before it comes, so that it can come in several parts. */
export interface Upload {
  readonly sha256: string;
  /** Only the owner goes on with what arrived. */
  readonly owner: string;
}

export interface ReceiveOptions extends Pick<WriteOptions, "maxBytes" | "signal"> {
  /** Byte at which the source goes on; by default 0. */
  readonly offset?: number | undefined;
}

/** Uploaded models and artifacts, as workers need them: file by file. What is in a store is complete and never changes. */
export interface BlobFiles {
  find(sha256: string): Promise<{ bytes: number } | undefined>;
  /** Makes the blob a file at `path`, which must be on this machine and not exist. */
  materialize(sha256: string, path: string, signal?: AbortSignal): Promise<void>;
  /** Takes in a whole file of this machine or leaves nothing behind. */
  writeFile(path: string, options?: Pick<WriteOptions, "expectedSha256" | "signal">): Promise<Blob>;
}

export interface BlobStore extends BlobFiles {
  /** The stream fails with `ENOENT` when there is no such blob: `find()` it first. */
  read(sha256: string, range?: BlobRange): Readable;
  /** Takes in the whole source or leaves nothing behind. */
  write(source: AsyncIterable<Uint8Array>, options?: WriteOptions): Promise<Blob>;
  /** How much is kept of an upload that broke off. */
  findPartial(upload: Upload): Promise<{ bytes: number } | undefined>;
  /**
   * Takes in an upload. What arrived is kept when the source breaks off, unless another is sending the same.
   * @throws ServiceError upload_offset_mismatch where less is kept, payload_too_large or model_checksum_mismatch for the
   * whole content, of which nothing is kept then
   */
  receive(
    upload: Upload,
    source: AsyncIterable<Uint8Array>,
    options?: ReceiveOptions,
  ): Promise<Blob>;
  /** Removes what writers left that are gone for good. */
  purge(): Promise<void>;
}
