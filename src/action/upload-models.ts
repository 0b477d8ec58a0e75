import path from "node:path";
import * as core from "@actions/core";
import type { Client } from "../client/create-client.ts";
import { formatBytes } from "../contract/format-bytes.ts";
import type { ModelReference } from "../contract/model.ts";
import type { NamedModel } from "./find-models.ts";

const progressMs = 5_000;

/** Makes sure that the service has all models, and gives them as a batch names them. Only what it lacks is sent. */
export async function uploadModels(
  models: readonly NamedModel[],
  client: Client,
  { workspace, signal }: { readonly workspace: string; readonly signal: AbortSignal },
): Promise<ModelReference[]> {
  const references: ModelReference[] = [];
  for (const model of models) {
    const { name, sha256 } = model;
    const source = "source" in model ? model.source : await upload(model.file);
    references.push({ name, source, ...(sha256 && { sha256 }) });
  }
  return references;

  async function upload(file: string): Promise<string> {
    const startedAt = performance.now();
    let toldAt = startedAt;
    const uploaded = await client.uploadModel(path.resolve(workspace, file), {
      signal,
      onProgress(sent, total) {
        const now = performance.now();
        if (now - toldAt < progressMs || sent === total) return;
        toldAt = now;
        core.info(`${file}: ${formatBytes(sent)} of ${formatBytes(total)} sent, ${rate(sent, now - startedAt)}`);
      },
    });
    const size = formatBytes(uploaded.bytes);
    const took = rate(uploaded.bytes, performance.now() - startedAt);
    core.info(uploaded.sent ? `${file}: uploaded, ${size}, ${took}` : `${file}: unchanged, ${size}`);
    return uploaded.source;
  }
}

function rate(bytes: number, ms: number): string {
  return `${formatBytes((bytes / Math.max(ms, 1)) * 1000)}/s`;
}
