import { workerEvent } from "../../../src/contract/jobs/worker.ts";

/** The lines that a worker printed as events. */
export function printedLines(output: readonly string[]): string[] {
  return output.flatMap((line) => {
    const event = workerEvent.parse(JSON.parse(line));
    return event.type === "log" ? event.text : [];
  });
}
