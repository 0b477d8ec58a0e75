import { join } from "node:path";

/** The file of the service's records. */
export function databasePath(dataDirectory: string): string {
  return join(dataDirectory, "service.sqlite");
}
