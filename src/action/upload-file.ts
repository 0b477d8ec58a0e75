import path from "node:path";
import type { ServiceClient } from "./service-client.ts";
import { hashFile } from "../client/hash-file.ts";
import { ProblemError } from "../client/problem-error.ts";
import type { Place } from "../contract/jobs/github-report.ts";
import { InputError } from "./input-error.ts";
import { retryWhileUnreachable } from "./retry-while-unreachable.ts";
import { UploadLog } from "./upload-log.ts";

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
