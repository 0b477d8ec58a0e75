import type { z } from "zod";
import { type FieldError, ServiceError } from "../contract/errors.ts";
import { limits } from "../contract/limits.ts";
import { truncate } from "../contract/truncate.ts";

/** Each issue with the JSON pointer of its field behind `prefix`. */
export function fieldErrors(prefix: string, error: z.ZodError): FieldError[] {
  return error.issues.flatMap((issue) => {
    const pointer = [prefix, ...issue.path.map(escapePointer)].join("/");
    if (issue.code === "unrecognized_keys") {
      const message = "Is not known";
      return issue.keys.map((key) => ({ pointer: `${pointer}/${escapePointer(key)}`, message }));
    }
    return [{ pointer, message: issue.message }];
  });
}

export function validationError(fields: readonly FieldError[]): ServiceError {
  const [first] = listed(fields);
  const others = fields.length > 1 ? ` and ${fields.length - 1} more` : "";
  const message = truncate(`Field "${first?.pointer}" is invalid${others}`, limits.listedErrorText);
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
