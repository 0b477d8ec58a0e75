import { lstatSync, realpathSync } from "node:fs";
import { dirname, isAbsolute, join, sep } from "node:path";
import { elementTypeName, rawByteLength } from "./element-type.ts";
import type { TensorProto } from "./onnx_pb.js";
import type { Payload } from "./onnx-model.ts";
import { payloadField } from "./payload.ts";
import { elementCount } from "./tensor-shape.ts";
import { locationPath } from "../../model-files/location-path.ts";
import { concatBytes, lengthPrefix } from "../../model-files/wire-format.ts";
import { ServiceError } from "../../contract/errors.ts";
import { quoteName } from "../../contract/text/quote-name.ts";

/** Resolves the external data of one model's tensors, confined to the model's folder. */
export class ExternalData {
  readonly #folder: string;
  readonly #files = new Map<string, { path: string; bytes: number }>();

  constructor(modelPath: string) {
    this.#folder = realpathSync(dirname(modelPath));
  }

  /** Bytes of the data files that tensors have referred to so far. */
  get bytes(): number {
    return [...this.#files.values()].reduce((sum, file) => sum + file.bytes, 0);
  }

  /**
   * @throws ServiceError external_data_refused, external_data_missing, external_data_short,
   * model_invalid where the tensor has content of its own too
   */
  resolve(tensor: TensorProto): Payload {
    requireNoContent(tensor);
    const entries = new Map(tensor.externalData.map((entry) => [entry.key, entry.value]));
    const location = entries.get("location") ?? "";
    const file = this.#resolveFile(location);
    const offset = parseByteCount(entries.get("offset") ?? "0", tensor, "offset");
    const length = parseLength(entries.get("length"), tensor);
    if (offset + length > file.bytes) {
      const needed = `tensor ${quoteName(tensor.name)} needs ${offset + length}`;
      throw new ServiceError(
        "external_data_short",
        `External data file ${quoteName(location)} has ${file.bytes} bytes, and ${needed}`,
      );
    }
    return { kind: "file", path: file.path, offset, length, field: payloadField.raw };
  }

  #resolveFile(location: string): { path: string; bytes: number } {
    const known = this.#files.get(location);
    if (known !== undefined) return known;
    const path = this.#resolvePath(location);
    const stat = lstatSync(path);
    if (!stat.isFile()) throw externalDataRefusedError(location, "is not a file");
    if (stat.nlink > 1) throw externalDataRefusedError(location, "is a hard link");
    const file = { path, bytes: stat.size };
    this.#files.set(location, file);
    return file;
  }

  #resolvePath(location: string): string {
    const relative = locationPath(location);
    if (relative === undefined) throw externalDataRefusedError(location, explainRefusal(location));
    const path = findRealPath(join(this.#folder, relative));
    if (path === undefined) {
      throw new ServiceError(
        "external_data_missing",
        `External data file ${quoteName(location)} does not exist`,
      );
    }
    if (!path.startsWith(this.#folder + sep)) {
      throw externalDataRefusedError(location, "leads out of the model's folder");
    }
    return path;
  }
}

function explainRefusal(location: string): string {
  if (location === "" || isAbsolute(location) || /^[A-Za-z]:|^\\/.test(location)) {
    return "is not a relative path";
  }
  if (location.includes("\0")) return "has a NUL character";
  if (location.split(/[\\/]/).includes("..")) return "leaves the model's folder";
  if (location.includes("\\")) return 'has "\\" between its parts, where only "/" is allowed';
  return "is not the path of a file, or has hidden characters";
}

function requireNoContent(tensor: TensorProto): void {
  const { rawData, floatData, int32Data, int64Data, doubleData, uint64Data } = tensor;
  const contents = [rawData, floatData, int32Data, int64Data, doubleData, uint64Data];
  if (contents.every(({ length }) => length === 0)) return;
  const message = `Tensor ${quoteName(tensor.name)} has both content and external data`;
  throw new ServiceError("model_invalid", message);
}

/** The length of a tensor's external data, which is what its shape needs. */
function parseLength(text: string | undefined, tensor: TensorProto): number {
  const name = quoteName(tensor.name);
  const needed = rawByteLength(elementCount(tensor.dims), tensor.dataType);
  if (needed === undefined) {
    const type = elementTypeName(tensor.dataType);
    const message = `Tensor ${name} of ${type} has external data`;
    throw new ServiceError("model_unsupported", message);
  }
  const length = parseByteCount(text ?? String(needed), tensor, "length");
  if (length !== needed) {
    const content = `${length} bytes of external data, and its shape needs ${needed}`;
    throw new ServiceError("model_invalid", `Tensor ${name} has ${content}`);
  }
  return length;
}

const missingFileCodes: ReadonlySet<unknown> = new Set([
  "ENOENT",
  "ENOTDIR",
  "ENAMETOOLONG",
  "ELOOP",
]);

/** Path without symbolic links; undefined if there is no file, or none can have that name. */
function findRealPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (missingFileCodes.has(code)) return undefined;
    throw error;
  }
}

function parseByteCount(text: string, tensor: TensorProto, what: string): number {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(value)) {
    const found = `${what} ${quoteName(text)}, which is not a number of bytes`;
    throw new ServiceError(
      "model_invalid",
      `The external data of tensor ${quoteName(tensor.name)} has ${found}`,
    );
  }
  return value;
}

function externalDataRefusedError(location: string, why: string): ServiceError {
  return new ServiceError(
    "external_data_refused",
    `External data location ${quoteName(location)} ${why}`,
  );
}

/** Fields of TensorProto that say where content outside of the ONNX file is. */
export const externalDataField = 13;
export const dataLocationField = 14;

/** Encodes one entry of a TensorProto's `external_data`, tag included. */
export function encodeExternalDataEntry(key: string, value: string): Uint8Array {
  const text = new TextEncoder();
  const [keyBytes, valueBytes] = [text.encode(key), text.encode(value)];
  const entry = concatBytes([
    lengthPrefix(1, keyBytes.length),
    keyBytes,
    lengthPrefix(2, valueBytes.length),
    valueBytes,
  ]);
  return concatBytes([lengthPrefix(externalDataField, entry.length), entry]);
}
