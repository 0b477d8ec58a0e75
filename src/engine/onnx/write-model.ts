import { randomUUID } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { ServiceError } from "../../contract/errors.ts";
import { modelGraphs } from "./model-traversal.ts";
import { layoutModel } from "./layout-model.ts";
import type { FileLayout, ModelLayout, Placement } from "./layout-model.ts";
import { payloadIndex } from "./payload.ts";
import type { OnnxModel } from "./payload.ts";

const copyBytes = 8 * 1024 * 1024;

/** Where a payload's bytes are to be written: a file that exists at its full size, and an offset in it. */
export interface Destination {
  readonly path: string;
  readonly offset: number;
}

export interface WrittenFile {
  readonly name: string;
  readonly kind: "model" | "weights" | "manifest";
  readonly bytes: number;
}

export interface WriteLayoutOptions {
  readonly directory: string;
  readonly layout: ModelLayout;
  /** Writes the content of every payload that is to be computed, at all of its destinations. */
  readonly writeComputedPayloads?: (
    destinations: (payload: number) => readonly Destination[],
  ) => Promise<void>;
  readonly onBytes?: (bytes: number) => void;
  readonly signal?: AbortSignal;
}

/** Writes a model with everything in its ONNX file, or in one external data file where that would be too large. */
export async function writeModel(
  model: OnnxModel,
  options: { directory: string; name: string; signal?: AbortSignal },
): Promise<WrittenFile[]> {
  const { name, ...where } = options;
  const layout = layoutModel(model, { name, shards: 1, assignShard: () => 0 });
  return writeLayout(model, { ...where, layout });
}

/**
 * Writes a model's files under temporary names and gives them their own when all are complete; on any error nothing stays.
 * @throws ServiceError storage_full
 */
export async function writeLayout(
  model: OnnxModel,
  options: WriteLayoutOptions,
): Promise<WrittenFile[]> {
  const { directory, layout } = options;
  const suffix = `.${randomUUID()}.partial`;
  const manifest = weightIndexFile(model, layout);
  const files = manifest === undefined ? layout.files : [...layout.files, manifest];
  const partial = (name: string) => join(directory, name + suffix);
  try {
    for (const file of files) await writeLiterals(partial(file.name), file);
    const destinations = (payload: number) =>
      (layout.placements.get(payload) ?? []).map(({ file, offset }) => ({
        path: partial(file),
        offset,
      }));
    await copyPayloads(model, options, partial);
    await options.writeComputedPayloads?.(destinations);
    options.signal?.throwIfAborted();
    for (const { name } of files.toReversed()) await rename(partial(name), join(directory, name));
  } catch (error) {
    await Promise.all(files.map(({ name }) => rm(partial(name), { force: true })));
    throw isDiskFull(error)
      ? new ServiceError(
          "storage_full",
          `The disk is full: cannot write ${files.length} files of the result`,
          {
            cause: error,
          },
        )
      : error;
  }
  return files.map(({ name, kind, bytes }) => ({ name, kind, bytes }));
}

function isDiskFull(error: unknown): boolean {
  return (
    error instanceof Error &&
    "code" in error &&
    (error.code === "ENOSPC" || error.code === "EDQUOT")
  );
}

async function writeLiterals(path: string, { bytes, literals }: FileLayout): Promise<void> {
  await using file = await open(path, "wx");
  await file.truncate(bytes);
  for (const literal of literals) await writeFully(file, literal.bytes, literal.offset);
}

async function writeFully(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    done += (await file.write(bytes, done, bytes.length - done, position + done)).bytesWritten;
  }
}

/** Copies what stays as it is. */
async function copyPayloads(
  model: OnnxModel,
  { layout, onBytes, signal }: WriteLayoutOptions,
  partial: (name: string) => string,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const handles = new Map<string, FileHandle>();
  const openOnce = async (path: string, flags: string) => {
    const handle = handles.get(path) ?? stack.use(await open(path, flags));
    handles.set(path, handle);
    return handle;
  };
  const buffer = new Uint8Array(copyBytes);
  for (const [index, places] of layout.placements) {
    const payload = model.payloads[index];
    if (payload?.kind !== "file") continue;
    const from = await openOnce(payload.path, "r");
    for (let done = 0; done < payload.length;) {
      signal?.throwIfAborted();
      const part = buffer.subarray(0, Math.min(copyBytes, payload.length - done));
      await readModelRange(from, part, payload.offset + done);
      for (const place of places) {
        await writeFully(await openOnce(partial(place.file), "r+"), part, place.offset + done);
      }
      done += part.length;
      onBytes?.(part.length);
    }
  }
}

async function readModelRange(
  file: FileHandle,
  bytes: Uint8Array,
  position: number,
): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesRead } = await file.read(bytes, done, bytes.length - done, position + done);
    if (bytesRead === 0)
      throw new ServiceError("model_truncated", "The model file became shorter while it was read");
    done += bytesRead;
  }
}

/** The index of weight files, in the form that safetensors made common: which file holds which tensor. */
function weightIndexFile(model: OnnxModel, layout: ModelLayout): FileLayout | undefined {
  const weights = layout.files.filter(({ kind }) => kind === "weights");
  if (weights.length === 0) return undefined;
  const names = new Set(weights.map(({ name }) => name));
  const weightMap: Record<string, string> = {};
  let totalSize = 0;
  for (const graph of modelGraphs(model.proto)) {
    for (const tensor of graph.initializer) {
      const place = findPlacement(layout, payloadIndex(tensor));
      if (place === undefined || !names.has(place.file)) continue;
      weightMap[tensor.name] = place.file;
      totalSize += model.payloads[payloadIndex(tensor) ?? -1]?.length ?? 0;
    }
  }
  const [modelFile] = layout.files;
  const text = JSON.stringify(
    { metadata: { total_size: totalSize }, weight_map: weightMap },
    undefined,
    2,
  );
  const bytes = new TextEncoder().encode(`${text}\n`);
  const name = `${modelFile?.name.replace(/\.onnx$/, "")}.index.json`;
  return { name, kind: "manifest", bytes: bytes.length, literals: [{ offset: 0, bytes }] };
}

function findPlacement(layout: ModelLayout, index: number | undefined): Placement | undefined {
  return index === undefined ? undefined : layout.placements.get(index)?.[0];
}
