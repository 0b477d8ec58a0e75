import { createWriteStream } from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { type Connection, sendRequest } from "./send-request.ts";
import { retryTransient } from "./retry.ts";

export interface ArtifactDownloadOptions {
  /** Where to save the artifact. */
  readonly file: string;
  readonly signal?: AbortSignal;
}

/** Saves an artifact. Continues after the last byte that was written after a broken connection. */
export async function downloadArtifact(
  { jobId, name }: { readonly jobId: string; readonly name: string },
  { file, signal }: ArtifactDownloadOptions,
  connection: Connection,
): Promise<void> {
  const partial = `${file}.partial`;
  const params = { id: jobId, name };
  let etag: string | undefined;
  let written = 0;
  const receiveRest = async () => {
    written = etag === undefined ? 0 : (await stat(partial)).size;
    const range = etag === undefined ? undefined : `bytes=${written}-`;
    const headers = { range, "if-range": etag };
    const answer = await sendRequest("getArtifact", { params, headers }, { ...connection, signal });
    const start = answer.status === 206 ? written : 0;
    // At a position, not at the end: a write of the broken connection may still be under way.
    const output = createWriteStream(partial, { flags: start === 0 ? "w" : "r+", start });
    output.once("open", () => {
      etag = String(answer.headers["etag"]);
    });
    await pipeline(answer.body, output, signal ? { signal } : {});
  };
  try {
    await retryTransient(receiveRest, signal, () => written);
    await rename(partial, file);
  } finally {
    await rm(partial, { force: true });
  }
}
