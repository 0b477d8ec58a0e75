import { stat } from "node:fs/promises";
import { type ClientOptions, sendRequest } from "./send-request.ts";
import { hashFile } from "./hash-file.ts";
import { ProblemError, UnexpectedAnswerError } from "./problem-error.ts";
import { readPieces } from "./read-pieces.ts";
import { retry } from "./retry.ts";

export interface UploadOptions {
  readonly signal?: AbortSignal;
  /** The file's SHA-256, where the caller knows it. */
  readonly sha256?: string;
  /** Before bytes are sent, from `offset` on: 0, or how much the service keeps of an upload that broke off. */
  readonly onStart?: (offset: number, totalBytes: number) => void;
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

/** Makes sure that the service has a file: hashes it, and sends only what is missing of it. */
export async function uploadModel(
  file: string,
  { signal, sha256: known, onStart, onProgress }: UploadOptions,
  options: ClientOptions,
): Promise<UploadedFile> {
  const { size: bytes } = await stat(file);
  const sha256 = known ?? (await hashFile(file, signal));
  const params = { sha256 };
  let sent = false;
  const sendFrom = async (offset: number) => {
    sent = true;
    onStart?.(offset, bytes);
    const stream = async function* (): AsyncGenerator<Uint8Array> {
      let position = offset;
      // The next piece is asked for when the connection has taken this one.
      for await (const piece of readPieces(file, signal, offset)) {
        yield piece;
        position += piece.length;
        onProgress?.(position, bytes);
      }
    };
    const headers = offset > 0 ? { "content-range": `bytes ${offset}-${bytes - 1}/${bytes}` } : {};
    const upload = { stream, bytes: bytes - offset };
    const answer = await sendRequest(
      "uploadModel",
      { params, headers },
      { ...options, signal, upload },
    );
    await answer.body.dump();
  };
  await retry(async () => {
    const kept = await findKeptBytes(params, { ...options, signal });
    if (kept === "all") return;
    // The service answers to a last byte, also where it has it already.
    const offset = Math.max(0, Math.min(kept, bytes - 1));
    try {
      await sendFrom(offset);
    } catch (error) {
      if (offset === 0 || !isChecksumMismatch(error)) throw error;
      // What was kept was not of this file, and is gone now.
      await sendFrom(0);
    }
  }, signal);
  return { source: `upload:sha256:${sha256}`, sha256, bytes, sent };
}

/** How many of a file's bytes the service keeps. */
async function findKeptBytes(
  params: { sha256: string },
  options: ClientOptions & { signal: AbortSignal | undefined },
): Promise<number | "all"> {
  try {
    const answer = await sendRequest("findModel", { params }, options);
    await answer.body.dump();
    return "all";
  } catch (error) {
    // The answer to HEAD has no body that could say `not_found`.
    if (!(error instanceof UnexpectedAnswerError) || error.status !== 404) throw error;
    const offset = String(error.headers["upload-offset"]);
    return /^\d{1,15}$/.test(offset) ? Number(offset) : 0;
  }
}

function isChecksumMismatch(error: unknown): boolean {
  return error instanceof ProblemError && error.problem.code === "model_checksum_mismatch";
}
