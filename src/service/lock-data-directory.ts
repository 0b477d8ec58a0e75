import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StartError } from "../settings/start-error.ts";

/**
 * Locks a data directory for this service until it is disposed of. SQLite's lock belongs to the
 * process, so the operating system frees it however the process ends.
 * @throws StartError where another service has locked it
 */
export function lockDataDirectory(directory: string): Disposable {
  const lock = new DatabaseSync(join(directory, "service.lock"), { timeout: 0 });
  try {
    lock.exec("begin exclusive");
  } catch (cause) {
    lock.close();
    throw new StartError(`Another service uses the data directory "${directory}"`, { cause });
  }
  return { [Symbol.dispose]: () => lock.close() };
}
