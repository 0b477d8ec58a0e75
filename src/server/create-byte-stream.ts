import type { ReadableStreamDefaultController } from "node:stream/web";
import { limits } from "../contract/limits.ts";

const encoder = new TextEncoder();

interface StreamedBytes {
  /** Yields bytes as they come. */
  readonly write: (signal: AbortSignal) => AsyncGenerator<Uint8Array, void>;
  /** Keeps a connection without bytes open. */
  readonly ping?: string | undefined;
  /** Whether the reader may still read. */
  readonly isAllowed: () => Promise<boolean>;
}

type Controller = ReadableStreamDefaultController<Uint8Array>;

/**
 * Bytes that are asked for only when the reader asks for more, so that of a reader who takes
 * nothing one piece is in memory.
 */
export function createByteStream(streamed: StreamedBytes): ReadableStream<Uint8Array> {
  const source = new ByteSource(streamed);
  return new ReadableStream<Uint8Array>(
    { pull: (controller) => source.pull(controller), cancel: () => source.end() },
    { highWaterMark: 0 },
  );
}

/** A timer adds pings and ends what may no longer be read, so that pieces cost nothing for that. */
class ByteSource {
  readonly #streamed: StreamedBytes;
  readonly #stop = new AbortController();
  readonly #written: AsyncGenerator<Uint8Array, void>;
  #timer: NodeJS.Timeout | undefined;
  #isAsked = false;
  #quietSeconds = 0;

  constructor(streamed: StreamedBytes) {
    this.#streamed = streamed;
    this.#written = streamed.write(this.#stop.signal);
  }

  async pull(controller: Controller): Promise<void> {
    const seconds = limits.accessCheckSeconds;
    this.#timer ??= setInterval(() => void this.#check(controller), seconds * 1000);
    this.#isAsked = true;
    try {
      const { done, value } = await this.#written.next();
      if (this.#stop.signal.aborted) return;
      this.#isAsked = false;
      this.#quietSeconds = 0;
      if (!done) return controller.enqueue(value);
      controller.close();
    } catch (error) {
      controller.error(error);
    }
    await this.end();
  }

  async end(): Promise<void> {
    this.#stop.abort();
    clearInterval(this.#timer);
    // A generator that is suspended at a `yield` would keep what it watches.
    await this.#written.return();
  }

  async #check(controller: Controller): Promise<void> {
    this.#quietSeconds += limits.accessCheckSeconds;
    try {
      const mayReadOn = await this.#streamed.isAllowed();
      if (this.#stop.signal.aborted) return;
      if (mayReadOn) return this.#ping(controller);
      controller.close();
    } catch (error) {
      controller.error(error);
    }
    await this.end();
  }

  #ping(controller: Controller): void {
    const { ping } = this.#streamed;
    // A reader who takes nothing gets no more of them.
    const isWaiting = this.#isAsked && controller.desiredSize === 0;
    if (ping === undefined || !isWaiting || this.#quietSeconds < limits.pingSeconds) return;
    this.#quietSeconds = 0;
    controller.enqueue(encoder.encode(ping));
  }
}
