import { realpath, stat } from "node:fs/promises";
import path from "node:path";
import { uploadSource } from "../contract/models/model-source.ts";
import { quoteName } from "../contract/text/quote-name.ts";
import { listExternalData } from "../model-files/list-external-data.ts";
import { locationPath } from "../model-files/location-path.ts";
import { readPieces } from "../model-files/read-pieces.ts";
import { createCaller } from "./create-caller.ts";
import { hashFile } from "./hash-file.ts";
import { retryTransient } from "./retry.ts";
import type { Connection } from "./send-request.ts";
import { uploadBlob } from "./upload-blob.ts";

export interface UploadOptions {
  readonly signal?: AbortSignal;
  /** The file's SHA-256, where the caller knows it. */
  readonly sha256?: string;
  /** Called before bytes are sent from `offset` on: 0, or the bytes of an earlier upload. */
  readonly onStart?: (offset: number, totalBytes: number) => void;
  readonly onProgress?: (sentBytes: number, totalBytes: number) => void;
}

/** A file that the service has. */
interface UploadedFile {
  readonly sha256: string;
  readonly bytes: number;
  /** False where the service had the file already. */
  readonly sent: boolean;
}

export interface UploadedModel extends UploadedFile {
  /** Value for `model.source`. */
  readonly source: string;
}

interface ModelPart {
  /** Relative to the folder of the ONNX file, with slashes. */
  readonly path: string;
  readonly file: string;
  readonly bytes: number;
}

/**
 * Uploads a model with the files of its external data, or only what the service lacks of them.
 * Progress counts the bytes of all files.
 * @throws Error where external data is missing or lies outside of the model's folder
 * @returns the hash of the ONNX file, and the bytes of all files
 */
export async function uploadModel(
  file: string,
  uploading: UploadOptions,
  connection: Connection,
): Promise<UploadedModel> {
  const { sha256: knownSha256, ...options } = uploading;
  const [onnxFile, ...external] = await listModelParts(file);
  if (external.length === 0) {
    const uploaded = await uploadFile(file, uploading, connection);
    return { source: uploadSource(uploaded.sha256), ...uploaded };
  }
  const bytes = external.reduce((sum, part) => sum + part.bytes, onnxFile.bytes);
  let done = 0;
  const send = async (part: ModelPart, sha256?: string) => {
    const counted = countAll(options, done, bytes);
    const known = sha256 === undefined ? counted : { ...counted, sha256 };
    const blob = await uploadFile(part.file, known, connection);
    done += part.bytes;
    return { ...blob, path: part.path };
  };
  const model = await send(onnxFile, knownSha256);
  const uploaded = [model];
  for (const part of external) uploaded.push(await send(part));
  const files = uploaded.map(({ path: name, sha256 }) => ({ path: name, sha256 }));
  const caller = createCaller(connection);
  const { source } = await retryTransient(
    () => caller.call("createManifest", { body: { files } }),
    uploading.signal,
  );
  const { sha256 } = model;
  return { source, sha256, bytes, sent: uploaded.some(({ sent }) => sent) };
}

async function uploadFile(
  file: string,
  { signal, onStart, onProgress, ...known }: UploadOptions,
  connection: Connection,
): Promise<UploadedFile> {
  const { size: bytes } = await stat(file);
  const sha256 = known.sha256 ?? (await hashFile(file, signal));
  const readFrom = (offset: number) => {
    onStart?.(offset, bytes);
    const count = (position: number) => onProgress?.(position, bytes);
    return { bytes: bytes - offset, stream: () => readCounted(file, offset, count, signal) };
  };
  const sent = await uploadBlob({ sha256, bytes, readFrom }, signal, connection);
  return { sha256, bytes, sent };
}

async function* readCounted(
  file: string,
  offset: number,
  onProgress: (position: number) => void,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  let position = offset;
  // The next piece is requested when the connection has taken this one.
  for await (const piece of readPieces(file, signal, offset)) {
    yield piece;
    position += piece.length;
    onProgress(position);
  }
}

/** The ONNX file first. */
async function listModelParts(file: string): Promise<[ModelPart, ...ModelPart[]]> {
  const folder = path.dirname(file);
  const { size } = await stat(file);
  const external: ModelPart[] = [];
  for (const location of listExternalData(file)) {
    external.push(await findExternalPart(folder, location));
  }
  return [{ path: path.basename(file), file, bytes: size }, ...external];
}

/**
 * A link could lead to any file of the machine: those that lie elsewhere are not sent. Neither are
 * hidden ones, such as `.git/config`, which can have secrets.
 */
async function findExternalPart(folder: string, location: string): Promise<ModelPart> {
  const refusal = `The model's external data ${quoteName(location)} is not sent`;
  if (
    path.posix
      .normalize(location)
      .split("/")
      .some((part) => part.startsWith("."))
  ) {
    throw new Error(`${refusal}: no part of its path may begin with "."`);
  }
  const name = locationPath(location);
  if (name === undefined) {
    throw new Error(`${refusal}: it must be a path below the model's folder, as "weights/w.data"`);
  }
  const file = path.join(folder, name);
  const real = await realpath(file).catch((cause: unknown) => {
    const message = `The model's external data ${quoteName(location)} is not in "${folder}"`;
    throw new Error(message, { cause });
  });
  const stats = await stat(real);
  if (real.startsWith(`${await realpath(folder)}${path.sep}`) && stats.isFile()) {
    return { path: name, file, bytes: stats.size };
  }
  throw new Error(
    `The model's external data ${quoteName(location)} is not a file below "${folder}"`,
  );
}

/** Options of one of several files, after `done` of all `bytes`. */
function countAll(
  { onStart, onProgress, ...options }: UploadOptions,
  done: number,
  bytes: number,
): UploadOptions {
  return {
    ...options,
    onStart: (offset) => (done === 0 || offset > 0 ? onStart?.(done + offset, bytes) : undefined),
    onProgress: (sent) => onProgress?.(done + sent, bytes),
  };
}
