import { setTimeout as delay } from "node:timers/promises";
import { limits } from "../contract/limits.ts";
import { type UnnumberedEvent, workerEvent } from "../contract/jobs/worker.ts";
import type { ServiceConnection } from "./service-connection.ts";

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

  /** Ends a delivery under way. */
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
