import { ServiceError } from "../contract/errors.ts";

/** `part` says of what it is, such as `of job "job-01h…"`. */
export function notFoundError(what: string, name: string, part = ""): ServiceError {
  return new ServiceError("not_found", `There is no ${what} "${name}" ${part}`.trimEnd());
}
