import { stat } from "node:fs/promises";
import { type Connection, sendRequest } from "./send-request.ts";
import { hashFile } from "./hash-file.ts";
import { ProblemError, UnexpectedAnswerError } from "./problem-error.ts";
import { readPieces } from "./read-pieces.ts";
import { retryTransient } from "./retry.ts";

/** How a file is sent. */
export interface UploadOptions {
  readonly signal?: AbortSignal;
  /** The file's SHA-256, where the caller knows it. */
  readonly sha256?: string;
  /** Called before bytes are sent from `offset` on: 0, or the bytes of an earlier upload. */
  readonly onStart?: (offset: number, totalBytes: number) => void;
  readonly onProgress?: (sentBytes: number, totalBytes: number) => void;
}

/** A file that the service has. */
export interface UploadedBlob {
  readonly sha256: string;
  readonly bytes: number;
  /** False where the service had the file already. */
  readonly sent: boolean;
}

interface FileUpload extends Omit<UploadOptions, "sha256"> {
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** Uploads a file, or only what the service lacks of it. */
export async function uploadBlob(
  file: string,
  uploading: UploadOptions,
  connection: Connection,
): Promise<UploadedBlob> {
  const upload = await measureUpload(file, uploading);
  const { bytes, sha256, signal } = upload;
  let sent = false;
  let keptBytes = 0;
  const sendOnce = async () => {
    const kept = await findKeptBytes(upload, connection);
    if (kept === "all") return;
    sent = true;
    keptBytes = kept;
    // The service answers to the last byte, so that at least that one is sent.
    await sendMissingBytes(upload, Math.max(0, Math.min(kept, bytes - 1)), connection);
  };
  await retryTransient(sendOnce, signal, () => keptBytes);
  return { sha256, bytes, sent };
}

async function measureUpload(file: string, uploading: UploadOptions): Promise<FileUpload> {
  const { size: bytes } = await stat(file);
  const sha256 = uploading.sha256 ?? (await hashFile(file, uploading.signal));
  return { ...uploading, file, bytes, sha256 };
}

async function sendMissingBytes(
  upload: FileUpload,
  offset: number,
  connection: Connection,
): Promise<void> {
  try {
    await sendBytes(upload, offset, connection);
  } catch (error) {
    if (offset === 0 || !isChecksumMismatch(error)) throw error;
    // The service kept other bytes than the file's, and has deleted them.
    await sendBytes(upload, 0, connection);
  }
}

async function sendBytes(
  upload: FileUpload,
  offset: number,
  connection: Connection,
): Promise<void> {
  const { sha256, bytes, signal, onStart } = upload;
  onStart?.(offset, bytes);
  const range = offset > 0 ? `bytes ${offset}-${bytes - 1}/${bytes}` : undefined;
  const answer = await sendRequest(
    "uploadModel",
    { params: { sha256 }, headers: { "content-range": range } },
    {
      ...connection,
      signal,
      upload: { stream: () => readWithProgress(upload, offset), bytes: bytes - offset },
    },
  );
  await answer.body.text();
}

async function* readWithProgress(
  { file, bytes, signal, onProgress }: FileUpload,
  offset: number,
): AsyncGenerator<Uint8Array> {
  let position = offset;
  // The next piece is requested when the connection has taken this one.
  for await (const piece of readPieces(file, signal, offset)) {
    yield piece;
    position += piece.length;
    onProgress?.(position, bytes);
  }
}

/** How many of a file's bytes the service keeps. */
async function findKeptBytes(
  { sha256, signal }: FileUpload,
  connection: Connection,
): Promise<number | "all"> {
  try {
    const answer = await sendRequest(
      "findModel",
      { params: { sha256 } },
      { ...connection, signal },
    );
    await answer.body.text();
    return "all";
  } catch (error) {
    // The answer to HEAD has no body with the code `not_found`.
    if (!(error instanceof UnexpectedAnswerError) || error.status !== 404) throw error;
    const offset = String(error.headers["upload-offset"]);
    return /^\d{1,15}$/.test(offset) ? Number(offset) : 0;
  }
}

function isChecksumMismatch(error: unknown): boolean {
  return error instanceof ProblemError && error.problem.code === "model_checksum_mismatch";
}
