import path from "node:path";
import { formatBytes } from "../contract/format-bytes.ts";
import { hashSource } from "../engine/onnx/hash-source.ts";
import type { ModelOutline, OutlinePayload } from "../engine/onnx/model-outline.ts";
import type { FileRange } from "../engine/onnx/file-range.ts";
import { restoreOutline } from "../engine/restore-outline.ts";
import type { BlobFiles, BlobRange } from "../storage/blob-store.ts";
import type { FetchedModel } from "../storage/fetch-model.ts";
import type { JobContext } from "./job-context.ts";

/** Payloads with less between them are fetched together: a request costs about as much. */
const maxGapBytes = 64 * 1024;

interface PartialModelOptions {
  /** Blob of the outline, and its size. */
  readonly outline: { readonly sha256: string; readonly bytes: number };
  /** SHA-256 of the model, a blob. */
  readonly modelSha256: string;
}

/** A model of which only those parts are on this machine that were asked for. */
export class PartialModel {
  readonly file: FetchedModel;
  readonly #blobs: BlobFiles;
  readonly #signal: AbortSignal;
  /** By their offsets. */
  readonly #missing: Map<number, OutlinePayload>;
  #bytesRead: number;

  private constructor(
    file: FetchedModel,
    { payloads }: ModelOutline,
    { blobs, signal, bytesRead }: Pick<JobContext, "blobs" | "signal"> & { bytesRead: number },
  ) {
    this.file = file;
    this.#blobs = blobs;
    this.#signal = signal;
    this.#missing = new Map(payloads.map((payload) => [payload.offset, payload]));
    this.#bytesRead = bytesRead;
  }

  /** Fetches what planning needs. */
  static async open(
    { blobs, directory, signal }: Pick<JobContext, "blobs" | "directory" | "signal">,
    { outline: { sha256, bytes: bytesRead }, modelSha256 }: PartialModelOptions,
  ): Promise<PartialModel> {
    const outlineFile = path.join(directory, "outline");
    await blobs.materialize(sha256, outlineFile, signal);
    const modelPath = path.join(directory, "model.onnx");
    const outline = await restoreOutline(outlineFile, modelPath);
    if (outline.modelSha256 !== modelSha256) {
      const other = `the model with SHA-256 ${outline.modelSha256}`;
      throw new Error(`The shard step stored an outline of ${other}, expected ${modelSha256}`);
    }
    const file = { path: modelPath, bytes: outline.bytes, sha256: modelSha256 };
    return new PartialModel(file, outline, { blobs, signal, bytesRead });
  }

  /**
   * Fetches the tensors at these places.
   * @throws Error where the service sends other content than the shard step has read
   */
  async fetchRanges(ranges: readonly FileRange[]): Promise<void> {
    const wanted = ranges.flatMap(({ offset }) => this.#missing.get(offset) ?? []);
    const payloads = [...new Set(wanted)].sort((a, b) => a.offset - b.offset);
    const joined = joinRanges(payloads);
    const { path: file, sha256 } = this.file;
    await this.#blobs.materializeRanges(sha256, file, { ranges: joined, signal: this.#signal });
    for (const payload of payloads) await this.#check(payload);
    this.#bytesRead += joined.reduce((sum, { start, end }) => sum + end + 1 - start, 0);
  }

  describe(): string {
    const total = formatBytes(this.file.bytes);
    return `Read ${formatBytes(this.#bytesRead)} of the model's ${total}`;
  }

  async #check(payload: OutlinePayload): Promise<void> {
    const { offset, length, sha256 } = payload;
    const source = { kind: "file", path: this.file.path, offset, length } as const;
    const digest = await hashSource(source, this.#signal);
    if (digest !== sha256) {
      const content = `${length} bytes at byte ${offset} of the model with SHA-256 ${digest}`;
      throw new Error(`The service sent ${content}, expected ${sha256}`);
    }
    this.#missing.delete(offset);
  }
}

function joinRanges(payloads: readonly FileRange[]): BlobRange[] {
  const joined: { start: number; end: number }[] = [];
  for (const { offset, length } of payloads) {
    const last = joined.at(-1);
    const end = offset + length - 1;
    if (last !== undefined && offset - last.end <= maxGapBytes) last.end = end;
    else joined.push({ start: offset, end });
  }
  return joined;
}
