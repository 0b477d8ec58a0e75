import { ServiceError } from "../contract/errors.ts";

export function notFoundError(what: string, name: string): ServiceError {
  return new ServiceError("not_found", `There is no ${what} "${name}"`);
}
