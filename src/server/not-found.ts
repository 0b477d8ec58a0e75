import { ServiceError } from "../contract/errors.ts";

export function notFound(what: string, name: string): ServiceError {
  return new ServiceError("not_found", `There is no ${what} "${name}"`);
}
