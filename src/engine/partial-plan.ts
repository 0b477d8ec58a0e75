import { type FileHandle, open } from "node:fs/promises";
import { createByteProgress, takeCopies } from "./execute-plan.ts";
import { hashSource } from "./onnx/hash-source.ts";
import { writeJsonTrailer } from "./onnx/json-trailer.ts";
import {
  type ModelOutline,
  outlineParts,
  type OutlinePayload,
  readOutline,
} from "./onnx/model-outline.ts";
import { type FetchRanges, isFixedWidth, rangesInModel } from "./onnx/payload.ts";
import { maxPlannedBytes } from "./onnx/read-tensor.ts";
import { type CompressionPlan, planCompression, type PlanOptions } from "./plan-compression.ts";
import type { RemoteFiles } from "./checkpoints/remote-files.ts";
import { partitionTasks, writePartition } from "./quantize/tasks/partition.ts";
import type { ModelFile } from "../contract/models/manifest.ts";
import { readExactly, writeAllBytes } from "../model-files/file-access.ts";

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
  plan: CompressionPlan,
  file: string,
  { modelSha256, files, signal }: OutlineOptions,
): Promise<ModelOutline> {
  const { model } = plan;
  await using source = await open(model.path, "r");
  await using handle = await open(file, "wx");
  const { size: bytes } = await source.stat();
  const payloads = await hashLargePayloads(plan, signal);
  const outline = { modelSha256, bytes, payloads, files: [...files] };
  let end = 0;
  for (const { offset, position, length } of outlineParts(outline)) {
    const part = new Uint8Array(length);
    const endError = () => new Error(`"${model.path}" became shorter while it was read`);
    await readExactly(source, part, offset, endError);
    await writeAllBytes(handle, part, position);
    end = position + length;
  }
  await writeJsonTrailer(handle, outline, end);
  return outline;
}

/** Those that a plan only copies or has tasks for: it reads what operators are folded into. */
async function hashLargePayloads(
  { model, tasks, layout }: CompressionPlan,
  signal: AbortSignal,
): Promise<OutlinePayload[]> {
  const { path, payloads } = model;
  const sources = tasks.map(({ source }) => source);
  const taken = new Set(rangesInModel(model, sources).map(({ offset }) => offset));
  const hashed: OutlinePayload[] = [];
  for (const [index, payload] of payloads.entries()) {
    if (payload.kind !== "file" || payload.path !== path || !isFixedWidth(payload.field)) continue;
    const { offset, length } = payload;
    if (length <= maxPlannedBytes) continue;
    if (!taken.has(offset) && !layout.placements.has(index)) continue;
    hashed.push({ offset, length, sha256: await hashSource(payload, signal) });
  }
  return hashed.sort((a, b) => a.offset - b.offset);
}

/**
 * Writes the parts of an ONNX file that its outline has to their places in a file of full size,
 * which can be planned: what is left out are holes.
 * @returns what is left out
 * @throws Error if a file is not an outline
 */
export async function restoreOutline(file: string, modelPath: string): Promise<ModelOutline> {
  const outline = await readOutline(file);
  await using source = await open(file, "r");
  await using model = await open(modelPath, "wx");
  await model.truncate(outline.bytes);
  for (const { offset, position, length } of outlineParts(outline)) {
    await writeAllBytes(model, await readPart(source, position, length), offset);
  }
  return outline;
}

/** Whether an ONNX file has the parts that its outline has. */
export async function hasOutline(modelPath: string, file: string): Promise<boolean> {
  const outline = await readOutline(file);
  await using source = await open(file, "r");
  await using model = await open(modelPath, "r");
  if ((await model.stat()).size !== outline.bytes) return false;
  for (const { offset, position, length } of outlineParts(outline)) {
    const expected = await readPart(source, position, length);
    if (!Buffer.from(expected.buffer).equals(await readPart(model, offset, length))) return false;
  }
  return true;
}

async function readPart(
  source: FileHandle,
  position: number,
  length: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const part = new Uint8Array(length);
  const endError = () => new Error("The outline or its model became shorter while it was read");
  await readExactly(source, part, position, endError);
  return part;
}

interface ShareOptions extends PlanOptions {
  /** Which of how many shares, from 0. */
  readonly share: { readonly index: number; readonly count: number };
  /** The file to write; must not exist. */
  readonly outputPath: string;
  /** SHA-256 of the ONNX file, where it is known; saves to hash its weights. */
  readonly modelSha256?: string | undefined;
  /** Called before parts of the ONNX file are read that need not be on this machine yet. */
  readonly fetchRanges?: FetchRanges | undefined;
  /** Where the files of a checkpoint are elsewhere. */
  readonly remote?: RemoteFiles | undefined;
  /** Whether the share has what it fetched of a checkpoint too, for the machine that assembles. */
  readonly keepsFetched?: boolean | undefined;
  readonly signal: AbortSignal;
  /** Called with the fraction of the work that is done, from 0 to 1. */
  readonly onProgress: (fraction: number, message: string) => void;
}

interface ShareReport {
  readonly weights: number;
  /** Bytes of those weights in the original. */
  readonly sourceBytes: number;
  /** Size of the file. */
  readonly bytes: number;
}

/**
 * Compresses a share of a model's weights for assembleShares. Shares are of about the same size,
 * and the same on every machine.
 * @throws ServiceError those of planCompression
 */
export async function optimizeShare(
  modelPath: string,
  { share, outputPath, modelSha256, fetchRanges, remote, keepsFetched, ...options }: ShareOptions,
): Promise<ShareReport> {
  const { signal, onProgress } = options;
  const plan = await planCompression(modelPath, options);
  signal.throwIfAborted();
  const { model } = plan;
  const tasks = [...plan.tasks, ...takeCopies(plan)];
  const shareTasks = partitionTasks(tasks, share.count)[share.index] ?? [];
  const sources = shareTasks.map(({ source }) => source);
  await fetchRanges?.(rangesInModel(model, sources));
  const sourceBytes = shareTasks.reduce((sum, task) => sum + task.sourceBytes, 0);
  const message = `Compressing share ${share.index + 1} of ${share.count}`;
  const onBytes = createByteProgress(sourceBytes, message, onProgress);
  const partition = { model, tasks: shareTasks };
  const bytes = await writePartition(outputPath, partition, {
    modelSha256,
    remote,
    keepsFetched,
    signal,
    onBytes,
  });
  const weights = shareTasks.filter(({ kind }) => kind !== "copy").length;
  return { weights, sourceBytes, bytes };
}
