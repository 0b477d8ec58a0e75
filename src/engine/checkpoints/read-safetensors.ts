import path from "node:path";
import { z } from "zod";
import { ServiceError } from "../../contract/errors.ts";
import { quoteName } from "../../contract/text/quote-name.ts";
import {
  type CheckpointTensor,
  invalidFileError,
  truncatedFileError,
} from "./checkpoint-tensor.ts";
import { encodedBytes, type Encoding } from "./encodings.ts";
import { openHead } from "./remote-files.ts";

/**
 * What a header may have at most: it takes up to twenty times its bytes in memory, 390 MB for one
 * of 22 MB. Files of the largest models have a few thousand tensors, each of some 150 bytes.
 */
const limits = { headerBytes: 16 * 1024 ** 2, tensors: 20_000 } as const;
/** Bytes of the header's length at the file's start. */
export const lengthBytes = 8;

const entry = z.strictObject({
  dtype: z.string(),
  shape: z.array(z.int().min(0)).max(8),
  data_offsets: z.tuple([z.int().min(0), z.int().min(0)]),
});

/** Where a tensor is among the bytes after the header. */
interface Span {
  readonly name: string;
  readonly begin: number;
  readonly end: number;
}

/**
 * Reads the header of a safetensors file, in two reads whatever the file's size. Every byte after
 * it belongs to exactly one tensor, as the format asks
 * (https://github.com/huggingface/safetensors#format).
 * @throws ServiceError model_invalid, model_truncated, model_unsupported; each names the file and,
 * where there is one, the tensor and the field
 */
export function readSafetensors(file: string): CheckpointTensor[] {
  const { header, start, size } = readHeader(file);
  const { __metadata__: _, ...entries } = header;
  checkCount(file, Object.keys(entries).length);
  const tensors: CheckpointTensor[] = [];
  const spans: Span[] = [];
  for (const [name, value] of Object.entries(entries)) {
    const { success, data, error } = entry.safeParse(value);
    if (!success) {
      const [issue] = error.issues;
      const field = issue?.path.join(".") ?? "";
      throw invalidFileError(file, name, `${field}: ${issue?.message ?? "is not valid"}`);
    }
    const [begin, end] = data.data_offsets;
    const encoding = requireEncoding(file, name, data.dtype);
    const values = data.shape.reduce((product, length) => product * length, 1);
    const needed = encodedBytes(encoding, values);
    if (end - begin !== needed) {
      const found = `data_offsets: ${begin} to ${end} are ${end - begin} bytes`;
      const shape = `${data.dtype} of shape [${data.shape.join(", ")}] needs ${needed}`;
      throw invalidFileError(file, name, `${found}, and ${shape}`);
    }
    spans.push({ name, begin, end });
    tensors.push({ name, path: file, offset: start + begin, encoding, dims: data.shape });
  }
  checkSpans(file, spans, size - start);
  return tensors;
}

function checkCount(file: string, count: number): void {
  if (count <= limits.tensors) return;
  const problem = `the header has ${count} tensors, and may have ${limits.tensors}`;
  throw invalidFileError(file, undefined, problem);
}

function requireEncoding(file: string, name: string, dtype: string): Encoding {
  const known: readonly Encoding[] = ["F32", "F16", "BF16", "F8_E4M3"];
  const encoding = known.find((each) => each === dtype);
  if (encoding !== undefined) return encoding;
  const where = `${path.basename(file)}: tensor ${quoteName(name)}: dtype`;
  const message = `${where} ${quoteName(dtype)} is not read; the known ones are ${known.join(", ")}`;
  throw new ServiceError("model_unsupported", message);
}

function readHeader(file: string): {
  header: Record<string, unknown>;
  start: number;
  size: number;
} {
  using head = openHead(file);
  const { size } = head;
  if (size < lengthBytes) throw truncatedFileError(file, `it has ${size} bytes, fewer than 8`);
  const first = Buffer.alloc(lengthBytes);
  head.read(first, 0);
  const start = safetensorsHeadBytes(file, first);
  if (start > size) throw truncatedFileError(file, `its header ends at ${start}, it at ${size}`);
  const bytes = Buffer.alloc(start - lengthBytes);
  head.read(bytes, lengthBytes);
  return { header: parseHeader(file, bytes), start, size };
}

/**
 * Where the header of a file ends, by its first 8 bytes.
 * @throws ServiceError model_invalid where it is too large
 */
export function safetensorsHeadBytes(file: string, first: Buffer): number {
  const length = first.readBigUInt64LE();
  if (length <= BigInt(limits.headerBytes)) return lengthBytes + Number(length);
  const allowed = `${length} bytes, and may have ${limits.headerBytes}`;
  throw invalidFileError(file, undefined, `the header's length is ${allowed}`);
}

function parseHeader(file: string, bytes: Buffer): Record<string, unknown> {
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(bytes.toString()));
  } catch (cause) {
    throw invalidFileError(file, undefined, "the header is not a JSON object", cause);
  }
}

/** Tensors must neither overlap, nor leave bytes between them or after the last one. */
function checkSpans(file: string, spans: readonly Span[], bytes: number): void {
  let before: Span | undefined;
  for (const span of spans.toSorted((a, b) => a.begin - b.begin || a.end - b.end)) {
    const from = before?.end ?? 0;
    if (span.begin !== from) {
      const wrong = span.begin < from ? "overlaps" : "leaves a gap after";
      const other = before === undefined ? "the header" : quoteName(before.name);
      const offsets = `data_offsets: it begins at ${span.begin} and ${wrong} ${other}`;
      throw invalidFileError(file, span.name, `${offsets}, which ends at ${from}`);
    }
    before = span;
  }
  const end = before?.end ?? 0;
  if (end > bytes) {
    const last = `tensor ${quoteName(before?.name ?? "")}: data_offsets: it ends at ${end}`;
    throw truncatedFileError(file, `${last}, and ${bytes} bytes follow the header`);
  }
  if (end < bytes) {
    throw invalidFileError(file, undefined, `${bytes - end} bytes belong to no tensor`);
  }
}
