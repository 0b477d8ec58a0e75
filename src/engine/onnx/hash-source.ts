import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { CheckpointValues } from "../checkpoints/checkpoint-values.ts";
import type { TensorSource } from "./read-tensor.ts";

/** Bytes that are hashed at once: the event loop waits for a few milliseconds. */
const chunkBytes = 1024 * 1024;

/** SHA-256 of a tensor's raw bytes, in hexadecimal digits. @throws Error if the file ends early */
export async function hashSource(source: TensorSource, signal: AbortSignal): Promise<string> {
  const hash = createHash("sha256");
  if (source.kind === "memory") return hash.update(source.bytes).digest("hex");
  if (source.kind === "checkpoint") return hashValues(source, signal);
  const { path, offset, length } = source;
  await using file = await open(path, "r");
  const buffer = new Uint8Array(Math.min(chunkBytes, length));
  for (let done = 0; done < length;) {
    signal.throwIfAborted();
    const wanted = Math.min(buffer.length, length - done);
    const { bytesRead } = await file.read(buffer, 0, wanted, offset + done);
    if (bytesRead === 0) throw new Error(`"${path}" became shorter while it was read`);
    hash.update(buffer.subarray(0, bytesRead));
    done += bytesRead;
  }
  return hash.digest("hex");
}

function hashValues(
  { type, pieces, length }: Extract<TensorSource, { kind: "checkpoint" }>,
  signal: AbortSignal,
): string {
  const hash = createHash("sha256");
  using values = new CheckpointValues(pieces);
  const buffer = new Uint8Array(Math.min(chunkBytes, length));
  for (let done = 0; done < length; done += buffer.length) {
    signal.throwIfAborted();
    const part = buffer.subarray(0, length - done);
    values.readBytes(type, done, part);
    hash.update(part);
  }
  return hash.digest("hex");
}
