import path from "node:path";
import { InputError } from "./explain-error.ts";
import { logLine } from "./print-output.ts";
import { retryWhileUnreachable } from "./retry-while-unreachable.ts";
import type { ServiceClient } from "./service-client.ts";
import { hashFile } from "../client/hash-file.ts";
import { ProblemError } from "../client/problem-error.ts";
import type { Place } from "../contract/batches/github-report.ts";
import { formatBytes } from "../contract/text/format-bytes.ts";

export interface UploadOptions {
  readonly workspace: string;
  readonly signal: AbortSignal;
}

interface ModelFile {
  /** Relative to the workspace. */
  readonly file: string;
  readonly place?: Place | undefined;
}

/**
 * Uploads a file of the workspace that the service lacks, and gives its source for a batch.
 * @throws InputError for a file that is larger than the service allows
 */
export async function uploadFile(
  client: ServiceClient,
  { file, place = { file, line: 1 } }: ModelFile,
  { workspace, signal }: UploadOptions,
): Promise<string> {
  const absolute = path.resolve(workspace, file);
  const log = new UploadLog(file);
  const sha256 = await hashFile(absolute, signal);
  const options = {
    signal,
    sha256,
    onStart: (offset: number, total: number) => log.start(offset, total),
    onProgress: (sent: number, total: number) => log.progress(sent, total),
  };
  try {
    const uploaded = await retryWhileUnreachable(
      async () => client.uploadModel(absolute, options),
      signal,
    );
    log.end(uploaded);
    return uploaded.source;
  } catch (error) {
    if (!(error instanceof ProblemError) || error.problem.code !== "payload_too_large") throw error;
    const advice = "the service's administrator sets the limit with MOS_MAX_MODEL_BYTES";
    const message = `${file}: ${error.problem.detail}; ${advice}`;
    throw new InputError([{ message, place }], { cause: error });
  }
}

const progressIntervalMs = 5_000;

/** Logs the progress of the upload of one file. */
class UploadLog {
  readonly #file: string;
  #startedAt = performance.now();
  #startedFrom = 0;
  #loggedAt = performance.now();

  constructor(file: string) {
    this.#file = file;
  }

  /** The upload starts, or resumes at an offset. */
  start(offset: number, total: number): void {
    if (offset > 0) this.#log(`continues at ${formatBytes(offset)} of ${formatBytes(total)}`);
    this.#startedAt = performance.now();
    this.#startedFrom = offset;
  }

  /** Logs at intervals. */
  progress(sent: number, total: number): void {
    const now = performance.now();
    if (now - this.#loggedAt < progressIntervalMs || sent === total) return;
    this.#loggedAt = now;
    const rate = this.#formatRate(sent, now);
    this.#log(`${formatBytes(sent)} of ${formatBytes(total)} sent, ${rate}`);
  }

  /** The service has the file, which it may have had before. */
  end({ sent, bytes }: { readonly sent: boolean; readonly bytes: number }): void {
    const size = formatBytes(bytes);
    const rate = this.#formatRate(bytes, performance.now());
    this.#log(sent ? `uploaded, ${size}, ${rate}` : `unchanged, ${size}`);
  }

  #formatRate(sent: number, now: number): string {
    const seconds = Math.max(now - this.#startedAt, 1) / 1000;
    return `${formatBytes((sent - this.#startedFrom) / seconds)}/s`;
  }

  #log(text: string): void {
    logLine(`[upload] ${this.#file}: ${text}`);
  }
}
