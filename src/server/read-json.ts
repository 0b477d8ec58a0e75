import { ServiceError } from "../contract/errors.ts";
import { checkJsonSize } from "./check-json-size.ts";
import { readBoundedBody } from "./read-bounded-body.ts";
import { readMediaType } from "./read-media-type.ts";

/**
 * The JSON body of a request.
 * @throws ServiceError unsupported_media_type, payload_too_large, malformed_request
 */
export async function readJson(request: Request, maxBytes: number): Promise<unknown> {
  const type = readMediaType(request);
  if (type !== "application/json") {
    const found = type === "" ? "is missing" : `is "${type}"`;
    const message = `Content-Type ${found} and must be "application/json"`;
    throw new ServiceError("unsupported_media_type", message);
  }
  const bytes = await readBoundedBody(request, maxBytes);
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
