import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { type ClientOptions, send } from "./call-route.ts";
import { ProblemError } from "./problem-error.ts";
import { readPieces } from "./read-pieces.ts";
import { retry } from "./retry.ts";

export interface UploadOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (sentBytes: number, totalBytes: number) => void;
}

export interface UploadedFile {
  /** What to name in `model.source`. */
  readonly source: string;
  readonly sha256: string;
  readonly bytes: number;
  /** False where the service had the file already. */
  readonly sent: boolean;
}

/** Makes sure that the service has a file: hashes it, and sends it only where it is missing. */
export async function uploadModel(
  file: string,
  { signal, onProgress }: UploadOptions,
  options: ClientOptions,
): Promise<UploadedFile> {
  const { size: bytes } = await stat(file);
  const sha256 = await hashFile(file, signal);
  const params = { sha256 };
  const uploaded = { source: `upload:sha256:${sha256}`, sha256, bytes };
  if (await retry(() => hasModel(params, { ...options, signal }), signal)) return { ...uploaded, sent: false };
  await retry(async () => {
    const stream = async function* (): AsyncGenerator<Uint8Array> {
      let sent = 0;
      // The next piece is asked for when the connection has taken this one.
      for await (const piece of readPieces(file, signal)) {
        yield piece;
        sent += piece.length;
        onProgress?.(sent, bytes);
      }
    };
    const answer = await send("uploadModel", { params }, { ...options, signal, upload: { stream, bytes } });
    await answer.body.dump();
  }, signal);
  return { ...uploaded, sent: true };
}

async function hashFile(file: string, signal: AbortSignal | undefined): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of readPieces(file, signal)) hash.update(piece);
  return hash.digest("hex");
}

async function hasModel(
  params: { sha256: string },
  options: ClientOptions & { signal: AbortSignal | undefined },
): Promise<boolean> {
  try {
    const answer = await send("findModel", { params }, options);
    await answer.body.dump();
    return true;
  } catch (error) {
    // The answer to HEAD has no body that could say `not_found`.
    if (!(error instanceof ProblemError) && error instanceof Error && "status" in error && error.status === 404)
      return false;
    throw error;
  }
}
