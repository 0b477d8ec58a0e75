import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StartError } from "../settings/start-error.ts";

/**
 * Keeps other services off a data directory until it is disposed of. SQLite holds the lock for the process, so the
 * operating system frees it however the process ends.
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
