import { fstatSync } from "node:fs";

/**
 * Calls `stop` when the worker has to stop: on SIGTERM or SIGINT, and when standard input closes,
 * where that is a pipe: then the process that started the worker has ended.
 */
export function onStopRequest(stop: (reason: string) => void): void {
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop(signal));
  const input = fstatSync(0);
  if (!input.isFIFO() && !input.isSocket()) return;
  process.stdin.resume();
  process.stdin.on("close", () => stop("its service has ended"));
}
