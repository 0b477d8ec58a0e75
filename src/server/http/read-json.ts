import type { HeldMemory } from "./body-memory.ts";
import { ServiceError } from "../../contract/errors.ts";
import { limits } from "../../contract/limits.ts";

/**
 * The JSON body of a request.
 * @throws ServiceError unsupported_media_type, payload_too_large, malformed_request; unavailable
 * where memory for bodies is used up
 */
export async function readJson(
  request: Request,
  maxBytes: number,
  held: HeldMemory,
): Promise<unknown> {
  const type = readMediaType(request);
  if (type !== "application/json") {
    const found = type === "" ? "is missing" : `is "${type}"`;
    const message = `Content-Type ${found} and must be "application/json"`;
    throw new ServiceError("unsupported_media_type", message);
  }
  const bytes = await readBoundedBody(request, maxBytes, held.take);
  if (bytes.length === 0) {
    throw new ServiceError("malformed_request", "The body is empty and must be JSON");
  }
  checkJsonSize(bytes);
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    throw new ServiceError("malformed_request", "The body is not JSON in UTF-8", { cause });
  }
}

/** The media type of the Content-Type header without parameters; empty if there is none. */
function readMediaType(request: Request): string {
  const [type = ""] = (request.headers.get("content-type") ?? "").split(";");
  return type.trim().toLowerCase();
}

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const opening: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const closing: ReadonlySet<number> = new Set([0x5d, 0x7d]);

/**
 * Counts what a JSON text holds before anything is made of it.
 * @throws ServiceError payload_too_large where it is nested too deep or has too many values
 */
function checkJsonSize(text: Uint8Array): void {
  let depth = 0;
  let values = 1;
  let isString = false;
  for (let i = 0; i < text.length; i++) {
    const byte = text[i] ?? 0;
    if (isString) {
      if (byte === backslash) i += 1;
      else if (byte === quote) isString = false;
    } else if (byte === quote) {
      isString = true;
    } else if (byte === comma) {
      values += 1;
    } else if (opening.has(byte)) {
      depth += 1;
      values += 1;
    } else if (closing.has(byte)) {
      depth -= 1;
    }
    if (depth > limits.jsonDepth) throw tooLarge(`is nested deeper than ${limits.jsonDepth}`);
    if (values > limits.jsonValues) throw tooLarge(`has more than ${limits.jsonValues} values`);
  }
}

function tooLarge(what: string): ServiceError {
  return new ServiceError("payload_too_large", `The body ${what}`);
}

/**
 * A body in one buffer, since a list of pieces of one byte each would be a hundred times as large.
 * Each growth of the buffer is asked for by `takeMemory`.
 * @throws ServiceError payload_too_large
 */
export async function readBoundedBody(
  request: Request,
  maxBytes: number,
  takeMemory: (bytes: number) => void = () => {},
): Promise<Uint8Array> {
  checkDeclaredLength(request, maxBytes);
  let body = Buffer.alloc(0);
  let length = 0;
  for await (const chunk of readBody(request)) {
    const needed = length + chunk.byteLength;
    if (needed > maxBytes) {
      throw new ServiceError("payload_too_large", `The body has more than ${maxBytes} bytes`);
    }
    if (needed > body.length) {
      const size = Math.min(maxBytes, Math.max(needed, 2 * body.length));
      takeMemory(size - body.length);
      body = Buffer.concat([body.subarray(0, length)], size);
    }
    body.set(chunk, length);
    length = needed;
  }
  return body.subarray(0, length);
}

/**
 * Refuses a body by its Content-Length before it is read.
 * @throws ServiceError payload_too_large
 */
export function checkDeclaredLength(request: Request, maxBytes: number): void {
  const declared = readDeclaredLength(request);
  if (declared <= maxBytes) return;
  const message = `The body has ${declared} bytes, ${maxBytes} are allowed`;
  throw new ServiceError("payload_too_large", message);
}

/** The Content-Length; 0 where the length is not known before. */
export function readDeclaredLength(request: Request): number {
  return Number(request.headers.get("content-length") ?? 0);
}

/**
 * The bytes of a body. A reader that stops leaves the rest where it is: cancelling it would close
 * the connection before the answer is sent.
 */
export function readBody(request: Request): AsyncIterable<Uint8Array> {
  return request.body?.values({ preventCancel: true }) ?? noBytes();
}

async function* noBytes(): AsyncGenerator<Uint8Array> {}
