import path from "node:path";
import * as core from "@actions/core";
import type { Client } from "../client/create-client.ts";
import { hashFile } from "../client/hash-file.ts";
import { ProblemError } from "../client/problem-error.ts";
import { formatBytes } from "../contract/format-bytes.ts";
import type { ModelReference } from "../contract/model.ts";
import type { NamedModel } from "./find-models.ts";
import { escapeLogLine } from "./escape-log-line.ts";
import { InputError } from "./input-error.ts";
import { retryWhileUnreachable } from "./retry-while-unreachable.ts";

const progressMs = 5_000;

interface UploadOptions {
  readonly workspace: string;
  readonly signal: AbortSignal;
}

/**
 * Makes sure that the service has all models, and gives them as a batch names them. Only what it lacks is sent.
 * @throws InputError for a model that is larger than the service allows
 */
export async function uploadModels(
  models: readonly NamedModel[],
  client: Client,
  options: UploadOptions,
): Promise<ModelReference[]> {
  const references: ModelReference[] = [];
  for (const model of models) {
    const { name, sha256, place } = model;
    const source =
      "source" in model ? model.source : await upload(client, { file: model.file, place }, options);
    references.push({ name, source, ...(sha256 && { sha256 }) });
  }
  return references;
}

async function upload(
  client: Client,
  { file, place = { file, line: 1 } }: { file: string; place: NamedModel["place"] },
  { workspace, signal }: UploadOptions,
): Promise<string> {
  const absolute = path.resolve(workspace, file);
  const logUpload = (text: string) => core.info(escapeLogLine(`[upload] ${file}: ${text}`));
  let [startedAt, startedFrom] = [performance.now(), 0];
  let loggedAt = startedAt;
  const rateAt = (sent: number, now: number) => formatRate(sent - startedFrom, now - startedAt);
  const onStart = (offset: number, total: number) => {
    if (offset > 0) logUpload(`goes on at ${formatBytes(offset)} of ${formatBytes(total)}`);
    [startedAt, startedFrom] = [performance.now(), offset];
  };
  const onProgress = (sent: number, total: number) => {
    const now = performance.now();
    if (now - loggedAt < progressMs || sent === total) return;
    loggedAt = now;
    logUpload(`${formatBytes(sent)} of ${formatBytes(total)} sent, ${rateAt(sent, now)}`);
  };
  try {
    const sha256 = await hashFile(absolute, signal);
    const options = { signal, sha256, onStart, onProgress };
    const { source, sent, bytes } = await retryWhileUnreachable(
      () => client.uploadModel(absolute, options),
      signal,
    );
    const size = formatBytes(bytes);
    logUpload(
      sent ? `uploaded, ${size}, ${rateAt(bytes, performance.now())}` : `unchanged, ${size}`,
    );
    return source;
  } catch (error) {
    if (!(error instanceof ProblemError) || error.problem.code !== "payload_too_large") throw error;
    const message = `${file}: ${error.problem.detail}; the service's administrator sets the limit with MOS_MAX_MODEL_BYTES`;
    throw new InputError([{ message, place }], { cause: error });
  }
}

function formatRate(bytes: number, ms: number): string {
  return `${formatBytes((bytes / Math.max(ms, 1)) * 1000)}/s`;
}
