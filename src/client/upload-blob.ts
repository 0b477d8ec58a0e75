import { ProblemError, UnexpectedAnswerError } from "./problem-error.ts";
import { retryTransient } from "./retry.ts";
import { type Connection, sendRequest } from "./send-request.ts";
import type { UploadBody } from "./transport.ts";

/** An upload goes on where it stopped, and may survive a restart of the service. */
const tries = 12;

interface SentBlob {
  readonly sha256: string;
  readonly bytes: number;
  /** Reads it from an offset on: 0, or the bytes of an earlier upload. */
  readonly readFrom: (offset: number) => UploadBody;
}

/**
 * Uploads a blob, or only what the service lacks of it.
 * @returns false where the service had all of it
 */
export async function uploadBlob(
  blob: SentBlob,
  signal: AbortSignal | undefined,
  connection: Connection,
): Promise<boolean> {
  let sent = false;
  let keptBytes = 0;
  const sendOnce = async () => {
    const kept = await findKeptBytes(blob.sha256, signal, connection);
    if (kept === "all") return;
    sent = true;
    keptBytes = kept;
    // The service answers to the last byte, so that at least that one is sent.
    const offset = Math.max(0, Math.min(kept, blob.bytes - 1));
    try {
      await sendBytes(blob, offset, signal, connection);
    } catch (error) {
      if (offset === 0 || !isChecksumMismatch(error)) throw error;
      // The service kept other bytes than the file's, and has deleted them.
      await sendBytes(blob, 0, signal, connection);
    }
  };
  await retryTransient(sendOnce, signal, () => keptBytes, tries);
  return sent;
}

async function sendBytes(
  { sha256, bytes, readFrom }: SentBlob,
  offset: number,
  signal: AbortSignal | undefined,
  connection: Connection,
): Promise<void> {
  const range = offset > 0 ? `bytes ${offset}-${bytes - 1}/${bytes}` : undefined;
  const answer = await sendRequest(
    "uploadModel",
    { params: { sha256 }, headers: { "content-range": range } },
    { ...connection, signal, upload: readFrom(offset) },
  );
  await answer.body.text();
}

/** How many of a blob's bytes the service keeps. */
async function findKeptBytes(
  sha256: string,
  signal: AbortSignal | undefined,
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
