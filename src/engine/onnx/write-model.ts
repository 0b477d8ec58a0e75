import { randomUUID } from "node:crypto";
import { constants, type FileHandle, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { at } from "./at.ts";
import { CheckpointValues } from "../checkpoints/checkpoint-values.ts";
import { type FileLayout, layoutModel, type ModelLayout } from "./layout-model.ts";
import { modelGraphs } from "./model-traversal.ts";
import type { OnnxModel, Payload } from "./onnx-model.ts";
import { payloadIndex } from "./payload.ts";
import { readExactly, writeAllBytes } from "../../model-files/file-access.ts";
import { ServiceError } from "../../contract/errors.ts";

const copyBytes = 1 * 1024 * 1024;

/** Where a payload's bytes are to be written: a file of full size, and an offset in it. */
export interface Destination {
  readonly path: string;
  readonly offset: number;
}

export interface WrittenFile {
  readonly name: string;
  readonly kind: "model" | "weights" | "manifest";
  readonly bytes: number;
}

interface WriteLayoutOptions {
  readonly directory: string;
  readonly layout: ModelLayout;
  /** Writes the content of every payload that is to be computed, at all of its destinations. */
  readonly writeComputedPayloads?: (
    destinations: (payload: number) => readonly Destination[],
  ) => Promise<void>;
  readonly onBytes?: (bytes: number) => void;
  readonly signal?: AbortSignal | undefined;
  /** Whether an earlier process may have written a part, and a later one goes on after an error. */
  readonly isResumed?: boolean;
}

/** Writes a model as an ONNX file, with one external data file where it would be too large. */
export async function writeModel(
  model: OnnxModel,
  options: { directory: string; name: string; signal?: AbortSignal | undefined },
): Promise<WrittenFile[]> {
  const { name, ...where } = options;
  const layout = layoutModel(model, { name, shards: 1, assignShard: () => 0 });
  return writeLayout(model, { ...where, layout });
}

/**
 * Writes a model's files under temporary names and renames them when all are complete; on any error
 * it deletes them, unless the work is resumed.
 * @throws ServiceError storage_full
 */
export async function writeLayout(
  model: OnnxModel,
  options: WriteLayoutOptions,
): Promise<WrittenFile[]> {
  const { directory, layout, signal, isResumed = false } = options;
  const suffix = isResumed ? "" : `.${randomUUID()}.partial`;
  const partial = (name: string) => join(directory, name + suffix);
  const index = weightIndexFile(model, layout);
  const files = index === undefined ? layout.files : [...layout.files, index];
  try {
    for (const file of files) await writeLiterals(partial(file.name), file, isResumed);
    await copyPayloads(model, options, partial);
    await options.writeComputedPayloads?.((payload) => findDestinations(layout, payload, partial));
    signal?.throwIfAborted();
    for (const { name } of files.toReversed()) await rename(partial(name), join(directory, name));
  } catch (error) {
    if (!isResumed) {
      await Promise.all(files.map(({ name }) => rm(partial(name), { force: true })));
    }
    if (!isDiskFull(error)) throw error;
    const message = `The disk is full: cannot write ${files.length} files of the result`;
    throw new ServiceError("storage_full", message, { cause: error });
  }
  return files.map(({ name, kind, bytes }) => ({ name, kind, bytes }));
}

function findDestinations(
  { placements }: ModelLayout,
  payload: number,
  partial: (name: string) => string,
): Destination[] {
  const places = placements.get(payload) ?? [];
  return places.map(({ file, offset }) => ({ path: partial(file), offset }));
}

function isDiskFull(error: unknown): boolean {
  return (
    error instanceof Error &&
    "code" in error &&
    (error.code === "ENOSPC" || error.code === "EDQUOT")
  );
}

async function writeLiterals(
  path: string,
  { bytes, literals }: FileLayout,
  mayExist: boolean,
): Promise<void> {
  const { O_CREAT, O_EXCL, O_WRONLY } = constants;
  await using file = await open(path, O_CREAT | O_WRONLY | (mayExist ? 0 : O_EXCL));
  await file.truncate(bytes);
  for (const literal of literals) await writeAllBytes(file, literal.bytes, literal.offset);
}

/** Copies the payloads that do not change. */
async function copyPayloads(
  model: OnnxModel,
  { layout, onBytes, signal }: WriteLayoutOptions,
  partial: (name: string) => string,
): Promise<void> {
  await using files = new OpenFiles();
  const buffer = new Uint8Array(copyBytes);
  for (const [index, places] of layout.placements) {
    const payload = model.payloads[index];
    if (payload === undefined || payload.kind === "computed") continue;
    using source = await openPayload(payload, files);
    for (let done = 0; done < payload.length;) {
      signal?.throwIfAborted();
      const part = buffer.subarray(0, Math.min(copyBytes, payload.length - done));
      await source.read(done, part);
      for (const { file, offset } of places) {
        await writeAllBytes(await files.open(partial(file), "r+"), part, offset + done);
      }
      done += part.length;
      onBytes?.(part.length);
    }
  }
}

type StoredPayload = Exclude<Payload, { kind: "computed" }>;

interface OpenPayload extends Disposable {
  /** Fills `into` with the content from a byte on. */
  read(position: number, into: Uint8Array): Promise<void>;
}

async function openPayload(payload: StoredPayload, files: OpenFiles): Promise<OpenPayload> {
  if (payload.kind === "file") {
    const from = await files.open(payload.path, "r");
    return {
      read: async (position, into) =>
        readExactly(from, into, payload.offset + position, modelTruncatedError),
      [Symbol.dispose]() {},
    };
  }
  const values = new CheckpointValues(payload.pieces);
  return {
    async read(position, into) {
      values.readBytes(payload.type, position, into);
    },
    [Symbol.dispose]: () => values[Symbol.dispose](),
  };
}

/** Opens each file once and closes all of them when it is disposed of. */
class OpenFiles implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();
  readonly #handles = new Map<string, FileHandle>();

  async open(path: string, flags: "r" | "r+"): Promise<FileHandle> {
    const handle = this.#handles.get(path) ?? this.#stack.use(await open(path, flags));
    this.#handles.set(path, handle);
    return handle;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

function modelTruncatedError(): ServiceError {
  return new ServiceError("model_truncated", "The model file became shorter while it was read");
}

/** The index of weight files in safetensors' form, which says which file has which tensor. */
function weightIndexFile(model: OnnxModel, layout: ModelLayout): FileLayout | undefined {
  const weights = layout.files.filter(({ kind }) => kind === "weights");
  if (weights.length === 0) return undefined;
  const names = new Set(weights.map(({ name }) => name));
  const weightMap: Record<string, string> = {};
  let totalSize = 0;
  for (const graph of modelGraphs(model.proto)) {
    for (const tensor of graph.initializer) {
      const payload = payloadIndex(tensor);
      if (payload === undefined) continue;
      const [place] = layout.placements.get(payload) ?? [];
      if (place === undefined || !names.has(place.file)) continue;
      weightMap[tensor.name] = place.file;
      totalSize += at(model.payloads, payload).length;
    }
  }
  const index = { metadata: { total_size: totalSize }, weight_map: weightMap };
  const bytes = new TextEncoder().encode(`${JSON.stringify(index, undefined, 2)}\n`);
  const name = `${layout.files[0]?.name.replace(/\.onnx$/, "")}.index.json`;
  return { name, kind: "manifest", bytes: bytes.length, literals: [{ offset: 0, bytes }] };
}
