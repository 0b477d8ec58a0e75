import type { Artifact } from "../contract/artifact.ts";
import type { JobError } from "../contract/errors.ts";
import { type LogLine, maxLogLineBytes } from "../contract/log.ts";
import type { JobOutcome, WorkingStatus } from "../contract/status.ts";
import type { OptimizedShare, TelemetryUpdate } from "../contract/worker.ts";
import type { EventSender } from "./event-sender.ts";

interface ReporterOptions {
  readonly sender: Pick<EventSender, "add">;
  readonly now: () => Date;
  /** Progress is told no more often, milliseconds. */
  readonly progressIntervalMs: number;
  readonly print: (line: string) => void;
}

export interface Reporter {
  /** Prints text and tells it, line by line. */
  log(text: string, stream?: LogLine["stream"]): void;
  status(status: WorkingStatus): void;
  model(bytes: number, sha256: string): void;
  /** Told now and then, however often it is called. */
  progress(fraction: number, message: string): void;
  telemetry(update: TelemetryUpdate): void;
  artifact(artifact: Artifact): void;
  share(share: OptimizedShare): void;
  result(outcome: JobOutcome, error?: JobError): void;
}

/** What a worker says about its job: on its own output and to the service. */
export function createReporter({
  sender,
  now,
  progressIntervalMs,
  print,
}: ReporterOptions): Reporter {
  let lastProgressAt = -Infinity;
  return {
    log(text, stream = "stdout") {
      for (const line of splitLogLines(text)) {
        print(line);
        sender.add({ type: "log", stream, text: line });
      }
    },
    status(status) {
      sender.add({ type: "status", status });
    },
    model(bytes, sha256) {
      sender.add({ type: "model", bytes, sha256 });
    },
    progress(fraction, message) {
      const at = now().getTime();
      if (at - lastProgressAt < progressIntervalMs) return;
      lastProgressAt = at;
      sender.add({
        type: "telemetry",
        telemetry: { progress: { fraction, message: message.slice(0, 500) } },
      });
    },
    telemetry(telemetry) {
      sender.add({ type: "telemetry", telemetry });
    },
    artifact(artifact) {
      sender.add({ type: "artifact", artifact });
    },
    share(share) {
      sender.add({ type: "share", share });
    },
    result(outcome, error) {
      sender.add({ type: "result", outcome, ...(error && { error }) });
    },
  };
}

/** Lines that fit the log, without what a terminal would take for commands: names in models are other people's text. */
export function splitLogLines(text: string): string[] {
  return text
    .toWellFormed()
    .split(/\r\n|\n|\r/)
    .map((line) => line.replace(/(?!\t)\p{Cc}/gu, "\u{fffd}"))
    .flatMap(splitLongLine);
}

function splitLongLine(line: string): string[] {
  const pieces: string[] = [];
  let rest = Buffer.from(line);
  while (rest.length > maxLogLineBytes) {
    let end = maxLogLineBytes;
    while (isContinuation(rest[end])) end--;
    pieces.push(rest.subarray(0, end).toString());
    rest = rest.subarray(end);
  }
  return [...pieces, rest.toString()];
}

/** Whether a byte continues a character of UTF-8, so that a cut before it would break the character. */
function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
