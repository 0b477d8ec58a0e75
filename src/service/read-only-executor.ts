import type { Executor } from "../executors/executor.ts";
import { createSecretAuthentication } from "../auth/authenticate.ts";
import type { Records } from "../records/open-records.ts";

/** Stands where the executor will be once there is room to begin work. */
export function createReadOnlyExecutor(records: Records): Executor {
  return {
    workers: createSecretAuthentication(records),
    submit() {
      throw new Error("A job was submitted while nothing is written");
    },
    queuePosition: () => undefined,
    readinessProblem: () => undefined,
    close: async () => {},
  };
}
