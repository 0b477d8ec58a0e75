import { realpath, stat } from "node:fs/promises";
import path from "node:path";
import { uploadSource } from "../contract/models/model-source.ts";
import { quoteName } from "../contract/text/quote-name.ts";
import { listExternalData } from "../model-files/list-external-data.ts";
import { createCaller } from "./create-caller.ts";
import { hashFile } from "./hash-file.ts";
import { readPieces } from "./read-pieces.ts";
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
  const parts = [onnxFile, ...external];
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  const uploaded: UploadedFile[] = [];
  let done = 0;
  for (const part of parts) {
    const counted = countAll(options, done, bytes);
    const sha256 = part === onnxFile ? knownSha256 : undefined;
    const known = sha256 === undefined ? counted : { ...counted, sha256 };
    uploaded.push(await uploadFile(part.file, known, connection));
    done += part.bytes;
  }
  const files = parts.map((part, i) => ({ path: part.path, sha256: uploaded[i]?.sha256 ?? "" }));
  const caller = createCaller(connection);
  const { source } = await retryTransient(
    () => caller.call("createManifest", { body: { files } }),
    uploading.signal,
  );
  const sha256 = uploaded[0]?.sha256 ?? "";
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
  const name = path.posix.normalize(location);
  if (name.split("/").some((part) => part.startsWith("."))) {
    const message = `The model's external data ${quoteName(location)} is not sent`;
    throw new Error(`${message}: no part of its path may begin with "."`);
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
  throw new Error(`The model's external data ${quoteName(location)} is no file below "${folder}"`);
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
