import type { UnnumberedEvent } from "../src/contract/worker-protocol/messages.ts";

/** The log of a worker's pod for a job that is Completed: every event as a line of JSON. */
export function workerOutput(lines: readonly string[]): string[] {
  const at = new Date().toISOString();
  const events: UnnumberedEvent[] = [
    { type: "status", status: "Sharding" },
    ...lines.map((text): UnnumberedEvent => ({ type: "log", stream: "stdout", text })),
    { type: "status", status: "Optimizing" },
    { type: "result", outcome: "Completed" },
  ];
  return events.map((event, index) => JSON.stringify({ ...event, seq: index + 1, at }));
}
