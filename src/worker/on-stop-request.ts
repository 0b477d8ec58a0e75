import { fstatSync } from "node:fs";

/**
 * Calls back when the worker has to stop: on SIGTERM or SIGINT, and when standard input ends, where that is a pipe: then
 * the process that started the worker is gone.
 */
export function onStopRequest(stop: (reason: string) => void): void {
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop(signal));
  const input = fstatSync(0);
  if (!input.isFIFO() && !input.isSocket()) return;
  process.stdin.resume();
  process.stdin.on("close", () => stop("its service is gone"));
}
