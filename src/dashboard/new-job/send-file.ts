import { delay } from "../../client/retry.ts";
import { type Problem, problem } from "../../contract/errors.ts";
import { jsonValue } from "../../contract/text/json-value.ts";
import { sessionHasEnded } from "../session/session-state.ts";

interface SendOptions {
  readonly sha256: string;
  readonly signal: AbortSignal;
  /** Bytes that the service has. */
  readonly onProgress: (sentBytes: number) => void;
}

const tries = 8;
const longestPauseMs = 15_000;

/** The service refused a file. */
class RefusedFileError extends Error {
  override readonly name = "RefusedFileError";
}

/** Sends a file, or what the service lacks of it; goes on after a lost connection. */
export async function sendFile(file: File, options: SendOptions): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      const kept = await countKeptBytes(options);
      if (kept === "all") return;
      // The service answers to the last byte, so that at least that one is sent.
      await sendFrom(file, Math.max(0, Math.min(kept, file.size - 1)), options);
      return;
    } catch (error) {
      options.signal.throwIfAborted();
      if (error instanceof RefusedFileError || attempt === tries) throw error;
      await delay(Math.min(longestPauseMs, 500 * 2 ** attempt), options.signal);
    }
  }
}

function fileAddress({ sha256 }: Pick<SendOptions, "sha256">): string {
  return `/v1/models/${sha256}`;
}

async function countKeptBytes(options: SendOptions): Promise<number | "all"> {
  const answer = await fetch(fileAddress(options), { method: "HEAD", signal: options.signal });
  if (answer.ok) return "all";
  if (answer.status === 401) sessionHasEnded();
  return Number(answer.headers.get("upload-offset") ?? 0);
}

/** `fetch` says nothing of its progress, and sends no streams over HTTP/1.1. */
function sendFrom(file: File, offset: number, options: SendOptions): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const request = new XMLHttpRequest();
  request.open("PUT", fileAddress(options));
  request.setRequestHeader("content-type", "application/octet-stream");
  if (offset > 0) {
    request.setRequestHeader("content-range", `bytes ${offset}-${file.size - 1}/${file.size}`);
  }
  request.upload.addEventListener("progress", ({ loaded }) => options.onProgress(offset + loaded));
  request.addEventListener("load", () => {
    if (request.status < 300) resolve();
    else reject(toRefusal(request));
  });
  request.addEventListener("error", () => reject(new Error("The connection was lost")));
  request.addEventListener("abort", () => reject(new Error("Stopped")));
  options.signal.addEventListener("abort", () => request.abort());
  request.send(file.slice(offset));
  return promise;
}

/** Refusals that pass by themselves, such as of a service that restarts, are no refusals. */
function toRefusal({ status, responseText }: XMLHttpRequest): Error {
  const parsed = jsonValue.pipe(problem).safeParse(responseText);
  if (status >= 500 || status === 409) return new Error(`The service answered ${status}`);
  const { detail }: Pick<Problem, "detail"> = parsed.data ?? { detail: `Status ${status}` };
  return new RefusedFileError(detail);
}
