import { ServiceError } from "../contract/errors.ts";

/** @throws ServiceError payload_too_large */
export async function readBoundedBody(request: Request, maxBytes: number): Promise<Uint8Array> {
  checkDeclaredLength(request, maxBytes);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of readBody(request)) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) {
      throw new ServiceError("payload_too_large", `The body has more than ${maxBytes} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
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
