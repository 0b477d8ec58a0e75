import { workerEvent } from "../../../src/contract/worker-protocol/messages.ts";

/** The lines that a worker printed as events, without what it says beside them of the service. */
export function printedLines(output: readonly string[]): string[] {
  return output.flatMap((line) => {
    if (line.startsWith("The worker's requests have failed")) return [];
    const event = workerEvent.parse(JSON.parse(line));
    return event.type === "log" ? event.text : [];
  });
}
