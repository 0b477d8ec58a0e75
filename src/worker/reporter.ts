import type { Artifact } from "../contract/jobs/artifact.ts";
import type { JobError } from "../contract/errors.ts";
import { textLimits } from "../contract/limits.ts";
import type { LogLine } from "../contract/jobs/log.ts";
import type { JobOutcome, WorkingStatus } from "../contract/jobs/status.ts";
import { truncate } from "../contract/text/bounded-text.ts";
import type {
  EndedStage,
  ModelOutline,
  OptimizedShare,
  TelemetryUpdate,
} from "../contract/jobs/worker.ts";
import type { EventSender } from "./event-sender.ts";
import { splitLogLines } from "./split-log-lines.ts";

interface ReporterOptions {
  readonly sender: Pick<EventSender, "add">;
  readonly now: () => Date;
  /** Shortest time between two reports of progress, milliseconds. */
  readonly progressIntervalMs: number;
  readonly print: (line: string) => void;
}

export interface Reporter {
  /** Prints text and reports it, line by line. */
  log(text: string, stream?: LogLine["stream"]): void;
  status(status: WorkingStatus): void;
  model(bytes: number, sha256: string): void;
  /** Reported from time to time, however often it is called. */
  progress(fraction: number, message: string): void;
  telemetry(update: TelemetryUpdate): void;
  /** Reports the end of a stage, with the seconds of all stages so far. */
  stage(ended: EndedStage, stageSeconds: TelemetryUpdate["stageSeconds"]): void;
  artifact(artifact: Artifact): void;
  outline(outline: ModelOutline): void;
  share(share: OptimizedShare): void;
  result(outcome: JobOutcome, error?: JobError): void;
}

/** Reports a worker's job: on its own output and to the service. */
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
    progress(fraction, text) {
      const at = now().getTime();
      // Also where the clock was set back.
      if (Math.abs(at - lastProgressAt) < progressIntervalMs) return;
      lastProgressAt = at;
      const progress = { fraction, message: truncate(text, textLimits.progressMessage) };
      sender.add({ type: "telemetry", telemetry: { progress } });
    },
    status: (status) => sender.add({ type: "status", status }),
    model: (bytes, sha256) => sender.add({ type: "model", bytes, sha256 }),
    telemetry: (telemetry) => sender.add({ type: "telemetry", telemetry }),
    stage: (stage, stageSeconds) =>
      sender.add({ type: "telemetry", telemetry: { stageSeconds }, stage }),
    artifact: (artifact) => sender.add({ type: "artifact", artifact }),
    outline: (outline) => sender.add({ type: "outline", outline }),
    share: (share) => sender.add({ type: "share", share }),
    result: (outcome, error) => sender.add({ type: "result", outcome, error }),
  };
}
