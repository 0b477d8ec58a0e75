import { createHash } from "node:crypto";
import type { Blob } from "./blob-store.ts";

/** Size and hash of content as it comes. */
export interface ContentMeter {
  readonly bytes: number;
  add(chunk: Uint8Array): void;
  /** More content may follow. */
  finish(): Blob;
}

export function createContentMeter(): ContentMeter {
  const hash = createHash("sha256");
  let bytes = 0;
  return {
    get bytes() {
      return bytes;
    },
    add(chunk) {
      bytes += chunk.byteLength;
      hash.update(chunk);
    },
    finish: () => ({ sha256: hash.copy().digest("hex"), bytes }),
  };
}
