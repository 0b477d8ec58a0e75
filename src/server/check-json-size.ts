import { ServiceError } from "../contract/errors.ts";
import { limits } from "../contract/limits.ts";

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const opening: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const closing: ReadonlySet<number> = new Set([0x5d, 0x7d]);

/**
 * Counts what a JSON text holds before anything is made of it.
 * @throws ServiceError payload_too_large where it is nested too deep or has too many values
 */
export function checkJsonSize(text: Uint8Array): void {
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
