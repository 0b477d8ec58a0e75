import { mkdir } from "node:fs/promises";
import path from "node:path";
import { ServiceError } from "../contract/errors.ts";
import { formatBytes } from "../contract/text/format-bytes.ts";
import type { Assignment, ModelOutline } from "../contract/worker-protocol/messages.ts";
import type { FileRange } from "../engine/onnx/payload.ts";
import { hashSource } from "../engine/onnx/hash-source.ts";
import { type OutlinePayload, readOutline } from "../engine/onnx/model-outline.ts";
import { hasOutline, restoreOutline } from "../engine/partial-plan.ts";
import type { BlobRange } from "../storage/blob-store.ts";
import { locateAllowedFile } from "../storage/fetch-model.ts";
import { modelFileName } from "./fetch-inputs.ts";
import { type FetchedFiles, fetchStoredFiles } from "./fetch-model-files.ts";
import type { JobContext } from "./job-context.ts";

/** Payloads with less between them are fetched together: a request costs about as much. */
const maxGapBytes = 64 * 1024;

type PartialModelContext = Pick<JobContext, "assignment" | "blobs" | "directory" | "signal">;

interface OpenedOutline {
  readonly file: FetchedFiles;
  readonly payloads: readonly OutlinePayload[];
  readonly fetch: (ranges: readonly BlobRange[]) => Promise<void>;
}

/** A model that is read only in the parts that were asked for, each checked by its hash. */
export class PartialModel {
  readonly file: FetchedFiles;
  readonly #fetch: OpenedOutline["fetch"];
  readonly #signal: AbortSignal;
  /** By their offsets. */
  readonly #unread: Map<number, OutlinePayload>;
  #bytesRead: number;

  private constructor(
    { file, payloads, fetch }: OpenedOutline,
    { signal, bytesRead }: { readonly signal: AbortSignal; readonly bytesRead: number },
  ) {
    this.file = file;
    this.#fetch = fetch;
    this.#signal = signal;
    this.#unread = new Map(payloads.map((payload) => [payload.offset, payload]));
    this.#bytesRead = bytesRead;
  }

  /** Fetches what planning needs. */
  static async open(context: PartialModelContext, outline: ModelOutline): Promise<PartialModel> {
    const { assignment, blobs, directory, signal } = context;
    const outlineFile = path.join(directory, "outline");
    await blobs.materialize(outline.sha256, outlineFile, signal);
    const isFile = assignment.model.source.startsWith("file:");
    const opened = await (isFile ? openInPlace : openCopy)(outlineFile, context);
    return new PartialModel(opened, { signal, bytesRead: outline.bytes });
  }

  /**
   * Fetches the tensors at these places.
   * @throws ServiceError model_checksum_mismatch where they are not what the shard step has read
   */
  async fetchRanges(ranges: readonly FileRange[]): Promise<void> {
    const wanted = ranges.flatMap(({ offset }) => this.#unread.get(offset) ?? []);
    const payloads = [...new Set(wanted)].sort((a, b) => a.offset - b.offset);
    const joined = joinRanges(payloads);
    await this.#fetch(joined);
    for (const payload of payloads) await this.#check(payload);
    this.#bytesRead += joined.reduce((sum, { start, end }) => sum + end + 1 - start, 0);
  }

  describe(): string {
    const total = formatBytes(this.file.bytes);
    return `Read ${formatBytes(this.#bytesRead)} of the model's ${total}`;
  }

  async #check({ offset, length, sha256 }: OutlinePayload): Promise<void> {
    const source = { kind: "file", path: this.file.path, offset, length } as const;
    const digest = await hashSource(source, this.#signal);
    if (digest !== sha256) {
      const content = `The model's ${length} bytes at byte ${offset} have SHA-256 ${digest}`;
      throw new ServiceError("model_checksum_mismatch", `${content}, expected ${sha256}`);
    }
    this.#unread.delete(offset);
  }
}

/** Lays out a file of full size with holes for what is not fetched yet. */
async function openCopy(
  outlineFile: string,
  { assignment, blobs, directory, signal }: PartialModelContext,
): Promise<OpenedOutline> {
  const folder = path.join(directory, "model");
  await mkdir(folder);
  const modelPath = path.join(folder, modelFileName);
  const { files, modelSha256: sha256, ...outline } = await restoreOutline(outlineFile, modelPath);
  const { bytes, payloads } = outline;
  checkModelHash(assignment, sha256);
  await fetchStoredFiles(files, folder, { blobs, limits: assignment.limits, signal });
  const fetch: OpenedOutline["fetch"] = async (ranges) =>
    blobs.materializeRanges(sha256, modelPath, { ranges, signal });
  return { file: { path: modelPath, bytes, sha256, external: files }, payloads, fetch };
}

/** A `file://` model is on this machine, and beside it its external data. */
async function openInPlace(
  outlineFile: string,
  { assignment }: PartialModelContext,
): Promise<OpenedOutline> {
  const { modelSha256: sha256, payloads } = await readOutline(outlineFile);
  checkModelHash(assignment, sha256);
  const located = await locateAllowedFile(assignment.model.source, assignment.limits);
  if (!(await hasOutline(located.path, outlineFile))) {
    const message = `The file is no longer the one with SHA-256 ${sha256}`;
    throw new ServiceError("model_checksum_mismatch", message);
  }
  return { file: { ...located, sha256, external: [] }, payloads, fetch: async () => {} };
}

function checkModelHash({ model }: Pick<Assignment, "model">, sha256: string): void {
  if (sha256 === model.sha256) return;
  const message = `The outline is of the model with SHA-256 ${sha256}, expected ${model.sha256}`;
  throw new ServiceError("model_checksum_mismatch", message);
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
