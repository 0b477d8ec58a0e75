import { setTimeout as delay } from "node:timers/promises";
import type { ServiceConnection } from "./service-connection.ts";
import type { JobError } from "../contract/errors.ts";
import { limits } from "../contract/limits.ts";
import type { Artifact } from "../contract/jobs/artifact.ts";
import type { LogLine } from "../contract/jobs/log.ts";
import { splitLogLines } from "../contract/jobs/split-log-lines.ts";
import type { JobOutcome, WorkingStatus } from "../contract/jobs/status.ts";
import type { EndedStage, StageName } from "../contract/jobs/telemetry.ts";
import {
  type Assignment,
  type ModelOutline,
  type OptimizedShare,
  type TelemetryUpdate,
  telemetryUpdate,
  type UnnumberedEvent,
  workerEvent,
  type WorkerStep,
} from "../contract/worker-protocol/messages.ts";

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
  // As the service takes it: names in models can be longer, and have hidden characters.
  const report = (update: TelemetryUpdate, stage?: EndedStage) =>
    sender.add({ type: "telemetry", telemetry: telemetryUpdate.parse(update), stage });
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
      report({ progress: { fraction, message: text } });
    },
    status: (status) => sender.add({ type: "status", status }),
    model: (bytes, sha256) => sender.add({ type: "model", bytes, sha256 }),
    telemetry: (telemetry) => report(telemetry),
    stage: (stage, stageSeconds) => report({ stageSeconds }, stage),
    artifact: (artifact) => sender.add({ type: "artifact", artifact }),
    outline: (outline) => sender.add({ type: "outline", outline }),
    share: (share) => sender.add({ type: "share", share }),
    result: (outcome, error) => sender.add({ type: "result", outcome, error }),
  };
}

type ProgressRanges = Partial<Record<StageName, readonly [number, number]>>;

/** A worker's progress before and after each of its stages. */
const stageProgressRanges: Record<"all" | WorkerStep, ProgressRanges> = {
  all: {
    fetch: [0, 0.15],
    shard: [0.15, 0.2],
    optimize: [0.2, 0.6],
    publish: [0.6, 0.65],
    evaluate: [0.65, 1],
  },
  shard: { fetch: [0, 0.7], shard: [0.7, 0.8], publish: [0.8, 1] },
  optimize: { fetch: [0, 0.2], optimize: [0.2, 0.9], publish: [0.9, 1] },
  assemble: { fetch: [0, 0.1], optimize: [0.1, 0.3], publish: [0.3, 0.4], evaluate: [0.4, 1] },
};

export interface Stage {
  /** `fraction` of the stage. */
  onProgress(this: void, fraction: number, message: string): void;
  log(this: void, line: string): void;
}

export type RunStage = <T>(name: StageName, work: (stage: Stage) => Promise<T>) => Promise<T>;

interface ClockOptions {
  readonly assignment: Pick<Assignment, "part" | "recipe">;
  readonly reporter: Reporter;
  readonly signal: AbortSignal;
}

/**
 * Runs the stages of a worker; reports the time of each, also of one that fails, and its progress
 * as part of the worker's. A stage can run several times, also within another one, whose time it is
 * not.
 */
export function createStageClock({
  assignment: { part, recipe },
  reporter,
  signal,
}: ClockOptions): RunStage {
  const seconds: Partial<Record<StageName, number>> = {};
  let counted = 0;
  const share = part?.step === "optimize" ? ` ${part.index + 1}/${recipe.parallelism}` : "";
  return async (name, work) => {
    signal.throwIfAborted();
    const [from, to] = stageProgressRanges[part?.step ?? "all"][name] ?? [0, 1];
    const startedAt = performance.now();
    const countedBefore = counted;
    try {
      return await work({
        onProgress: (fraction, message) =>
          reporter.progress(from + fraction * (to - from), message),
        log: (line) => reporter.log(`[${name}${share}] ${line}`),
      });
    } finally {
      const elapsed = (performance.now() - startedAt) / 1000;
      const all = (seconds[name] ?? 0) + elapsed - (counted - countedBefore);
      counted = countedBefore + elapsed;
      seconds[name] = Number(all.toFixed(3));
      reporter.stage({ name, seconds: Number(elapsed.toFixed(3)) }, { ...seconds });
    }
  };
}

/** How long events wait for others, to share a request. */
const batchDelayMs = 100;
/** A worker without events asks this often whether its job was cancelled. */
const heartbeatMs = 10_000;
const maxBatchEvents = 1000;
/** A batch has as much, or one event that has more. */
const maxBatchBytes = limits.workerBodyBytes / 2;
/** More unsent events, of a service that is slow or unreachable, end the job. */
const maxWaitingBytes = 64 * 1024 * 1024;

interface EventSenderOptions {
  readonly connection: Pick<ServiceConnection, "sendEvents">;
  readonly now: () => Date;
  /** Receives each event as it is sent, in order. */
  readonly record: (json: string) => void;
  /** Milliseconds between heartbeats; 10 s by default. */
  readonly heartbeatMs?: number;
  /** The service answered that the job was cancelled. */
  readonly onCancelled: () => void;
  /** Events can no longer be delivered. */
  readonly onFailure: (error: unknown) => void;
}

interface WaitingEvent {
  readonly seq: number;
  readonly json: string;
}

/**
 * Delivers events in order, each recorded once, over interruptions of the service. While there are
 * none it sends heartbeats: their answer may be that the job was cancelled.
 */
export class EventSender {
  readonly #options: EventSenderOptions;
  readonly #stop = new AbortController();
  readonly #waiting: WaitingEvent[] = [];
  #waitingBytes = 0;
  #nextSeq = 1;
  readonly #heartbeat: NodeJS.Timeout;
  #sending: Promise<void> | undefined;
  #flushing = new AbortController();
  #failed = false;

  constructor(options: EventSenderOptions) {
    this.#options = options;
    this.#heartbeat = setInterval(() => {
      this.#sending ??= this.#deliver({ heartbeat: true });
    }, options.heartbeatMs ?? heartbeatMs).unref();
  }

  add(event: UnnumberedEvent): void {
    if (this.#failed) return;
    const seq = this.#nextSeq++;
    const at = this.#options.now().toISOString();
    // Names in a model are as long as its author likes: the schema cuts them.
    const json = JSON.stringify(workerEvent.parse({ ...event, seq, at }));
    this.#options.record(json);
    this.#waiting.push({ seq, json });
    this.#waitingBytes += json.length;
    if (this.#waitingBytes > maxWaitingBytes) {
      this.#fail(new Error(`More than ${maxWaitingBytes} bytes of events wait for the service`));
    } else this.#sending ??= this.#deliver();
  }

  /** Waits until all events are recorded, but no longer than `withinMs`. */
  async flush(withinMs: number): Promise<boolean> {
    this.#flushing.abort();
    const limit = new AbortController();
    const late = delay(withinMs, undefined, { signal: limit.signal }).catch(() => undefined);
    while (this.#sending !== undefined && !this.#failed) {
      const isLate = await Promise.race([this.#sending.then(() => false), late.then(() => true)]);
      if (isLate) break;
    }
    limit.abort();
    return !this.#failed && this.#waiting.length === 0;
  }

  /** Stops heartbeats and a delivery under way. */
  close(): void {
    clearInterval(this.#heartbeat);
    this.#stop.abort();
  }

  async #deliver({ heartbeat = false } = {}): Promise<void> {
    try {
      if (heartbeat) await this.#sendBatch([]);
      while (this.#waiting.length > 0) {
        const { signal } = this.#flushing;
        if (this.#waiting.length < maxBatchEvents)
          await delay(batchDelayMs, undefined, { signal }).catch(() => undefined);
        await this.#sendBatch(this.#nextBatch());
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#sending = undefined;
    }
  }

  async #sendBatch(batch: readonly string[]): Promise<void> {
    const answer = await this.#options.connection.sendEvents(batch, this.#stop.signal);
    const before = this.#waiting.length;
    while (this.#waiting[0] !== undefined && this.#waiting[0].seq < answer.nextSeq) {
      this.#waitingBytes -= this.#waiting[0].json.length;
      this.#waiting.shift();
    }
    if (answer.cancelled) this.#options.onCancelled();
    else if (batch.length > 0 && this.#waiting.length === before) {
      throw new Error(
        `The service waits for event ${answer.nextSeq}, which this worker does not have`,
      );
    }
  }

  #nextBatch(): string[] {
    const batch: string[] = [];
    let bytes = 0;
    for (const { json } of this.#waiting) {
      bytes += Buffer.byteLength(json);
      if (batch.length === maxBatchEvents || (batch.length > 0 && bytes > maxBatchBytes)) break;
      batch.push(json);
    }
    return batch;
  }

  #fail(error: unknown): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#waiting.length = 0;
    this.#waitingBytes = 0;
    this.#options.onFailure(error);
  }
}
