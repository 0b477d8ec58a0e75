import * as core from "@actions/core";
import { formatBytes } from "../contract/text/format-bytes.ts";
import { escapeLogLine } from "./escape-log-line.ts";

const progressIntervalMs = 5_000;

/** Logs the progress of the upload of one file. */
export class UploadLog {
  readonly #file: string;
  #startedAt = performance.now();
  #startedFrom = 0;
  #loggedAt = performance.now();

  constructor(file: string) {
    this.#file = file;
  }

  /** The upload starts, or resumes at an offset. */
  start(offset: number, total: number): void {
    if (offset > 0) this.#log(`goes on at ${formatBytes(offset)} of ${formatBytes(total)}`);
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
    core.info(escapeLogLine(`[upload] ${this.#file}: ${text}`));
  }
}
