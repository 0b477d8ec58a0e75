import { workerEvent } from "../../../src/contract/worker-protocol/messages.ts";

/** Whether a worker says with the line that it does not reach the service. */
export function isOutageReport(line: string): boolean {
  return line.startsWith("The worker's requests have failed");
}

/** The lines that a worker printed as events, without what it says beside them of the service. */
export function printedLines(output: readonly string[]): string[] {
  return output.flatMap((line) => {
    if (isOutageReport(line)) return [];
    const event = workerEvent.parse(JSON.parse(line));
    return event.type === "log" ? event.text : [];
  });
}
