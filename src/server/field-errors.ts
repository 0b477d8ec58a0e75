import type { z } from "zod";
import { type FieldError, ServiceError } from "../contract/errors.ts";

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
  const [first] = fields;
  const others = fields.length > 1 ? ` and ${fields.length - 1} more` : "";
  const message = `Field "${first?.pointer}" is invalid${others}`;
  return new ServiceError("validation_failed", message, { fields });
}

function escapePointer(key: PropertyKey): string {
  return String(key).replaceAll("~", "~0").replaceAll("/", "~1");
}
