import { type FieldError, ServiceError } from "../../contract/errors.ts";
import { limits } from "../../contract/limits.ts";
import type { InputProblem } from "../../contract/parse-input.ts";
import { truncate } from "../../contract/text/truncate.ts";

/** Each problem with the JSON pointer of its field after `prefix`. */
export function fieldErrors(prefix: string, problems: readonly InputProblem[]): FieldError[] {
  return problems.map(({ path, message }) => ({
    pointer: [prefix, ...path.map(escapePointer)].join("/"),
    message: message.charAt(0).toUpperCase() + message.slice(1),
  }));
}

export function validationError(fields: readonly FieldError[]): ServiceError {
  const [first] = listed(fields);
  const others = fields.length > 1 ? ` and ${fields.length - 1} more` : "";
  const field = first?.pointer === "" ? "The body" : `Field "${first?.pointer}"`;
  const message = truncate(`${field} is invalid${others}`, limits.listedErrorText);
  return new ServiceError("validation_failed", message, { fields: listed(fields) });
}

/** The first fields, which are enough to see what is wrong with a request. */
function listed(fields: readonly FieldError[]): FieldError[] {
  return fields.slice(0, limits.listedErrors).map(({ pointer, message }) => ({
    pointer: truncate(pointer, limits.listedErrorText),
    message: truncate(message, limits.listedErrorText),
  }));
}

export function escapePointer(key: PropertyKey): string {
  return String(key).replaceAll("~", "~0").replaceAll("/", "~1");
}
