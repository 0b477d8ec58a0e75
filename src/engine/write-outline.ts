import type { ModelFile } from "../contract/models/manifest.ts";
import { open } from "node:fs/promises";
import { hashSource } from "./onnx/hash-source.ts";
import { writeJsonTrailer } from "./onnx/json-trailer.ts";
import { type ModelOutline, outlineParts, type OutlinePayload } from "./onnx/model-outline.ts";
import type { OnnxModel } from "./onnx/onnx-model.ts";
import { isFixedWidth } from "./onnx/payload.ts";
import { readExactly } from "./onnx/read-exactly.ts";
import { maxPlannedBytes } from "./onnx/read-tensor.ts";
import { writeFully } from "./onnx/write-fully.ts";

interface OutlineOptions {
  /** SHA-256 of the ONNX file. */
  readonly modelSha256: string;
  /** External data that the other machines can read. */
  readonly files: readonly ModelFile[];
  readonly signal: AbortSignal;
}

/**
 * Writes what other machines need of an ONNX file to plan as this one does: all but the content of
 * large tensors, of which it says where they lie and their hashes.
 * @returns what it leaves out
 */
export async function writeOutline(
  model: OnnxModel,
  file: string,
  { modelSha256, files, signal }: OutlineOptions,
): Promise<ModelOutline> {
  await using source = await open(model.path, "r");
  await using handle = await open(file, "wx");
  const { size: bytes } = await source.stat();
  const payloads = await hashLargePayloads(model, signal);
  const outline = { modelSha256, bytes, payloads, files: [...files] };
  let end = 0;
  for (const { offset, position, length } of outlineParts(outline)) {
    const part = new Uint8Array(length);
    const endError = () => new Error(`"${model.path}" became shorter while it was read`);
    await readExactly(source, part, { position: offset, endError });
    await writeFully(handle, part, position);
    end = position + length;
  }
  await writeJsonTrailer(handle, outline, end);
  return outline;
}

async function hashLargePayloads(
  { path, payloads }: OnnxModel,
  signal: AbortSignal,
): Promise<OutlinePayload[]> {
  const hashed: OutlinePayload[] = [];
  for (const payload of payloads) {
    if (payload.kind !== "file" || payload.path !== path || !isFixedWidth(payload.field)) continue;
    const { offset, length } = payload;
    if (length <= maxPlannedBytes) continue;
    hashed.push({ offset, length, sha256: await hashSource(payload, signal) });
  }
  return hashed.sort((a, b) => a.offset - b.offset);
}
