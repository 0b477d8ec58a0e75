import { ServiceError } from "../contract/errors.ts";
import { validationError } from "./field-errors.ts";

/**
 * The first byte of the last part of a file, by a Content-Range header of the contract's form.
 * @throws ServiceError validation_failed for another part, payload_too_large for a whole of more than `maxBytes`
 */
export function parseContentRange(header: string, maxBytes: number): number {
  const [first = 0, last = 0, size = 0] = (header.match(/\d+/g) ?? []).map(Number);
  if (first > last || last !== size - 1) {
    const message = `Is "${header}" and must go to the last byte: "bytes FIRST-${size - 1}/${size}"`;
    throw validationError([{ pointer: "header/content-range", message }]);
  }
  if (size > maxBytes) {
    throw new ServiceError(
      "payload_too_large",
      `The model has ${size} bytes, ${maxBytes} are allowed`,
    );
  }
  return first;
}
