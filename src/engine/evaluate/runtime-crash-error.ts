import { ServiceError } from "../../contract/errors.ts";

/** The runtime's process ended before it was asked to; no fault of what was sent to it. */
export class RuntimeCrashError extends ServiceError {
  constructor(message: string) {
    super("evaluation_failed", message);
  }
}
