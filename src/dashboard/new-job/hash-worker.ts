import { createSHA256 } from "hash-wasm";

const pieceBytes = 4 * 1024 * 1024;

/** What the worker says while it hashes a file, and at the end. */
export interface HashMessage {
  readonly hashedBytes: number;
  /** In hexadecimal, in the last message. */
  readonly sha256?: string;
}

async function hash(file: File): Promise<void> {
  const sha256 = await createSHA256();
  for (let start = 0; start < file.size; start += pieceBytes) {
    const end = Math.min(start + pieceBytes, file.size);
    sha256.update(new Uint8Array(await file.slice(start, end).arrayBuffer()));
    announceHash({ hashedBytes: end });
  }
  announceHash({ hashedBytes: file.size, sha256: sha256.digest() });
}

function announceHash(message: HashMessage): void {
  postMessage(message);
}

addEventListener("message", ({ data }: MessageEvent<File>) => void hash(data));
