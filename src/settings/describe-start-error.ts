import { StartError } from "./start-error.ts";

/** What a process prints before it exits: a StartError's message, the stack of any other error. */
export function describeStartError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error instanceof StartError ? error.message : (error.stack ?? error.message);
}
