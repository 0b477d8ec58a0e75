import { ServiceError } from "../contract/errors.ts";
import { validationError } from "./field-errors.ts";

/**
 * The first byte that a Content-Range header of the contract's form names.
 * @throws ServiceError validation_failed where its last byte is not the file's, payload_too_large
 * where the file has more than `maxBytes`
 */
export function parseContentRange(header: string, maxBytes: number): number {
  const [first = 0, last = 0, size = 0] = (header.match(/\d+/g) ?? []).map(Number);
  if (first > last || last !== size - 1) {
    const expected = `bytes FIRST-${size - 1}/${size}`;
    const message = `Is "${header}" and must go to the last byte: "${expected}"`;
    throw validationError([{ pointer: "header/content-range", message }]);
  }
  if (size > maxBytes) {
    const message = `The model has ${size} bytes, ${maxBytes} are allowed`;
    throw new ServiceError("payload_too_large", message);
  }
  return first;
}
