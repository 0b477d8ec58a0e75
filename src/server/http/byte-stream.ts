import type { ReadableStreamReadResult } from "node:stream/web";
import { setImmediate as nextTurn } from "node:timers/promises";
import { limits } from "../../contract/limits.ts";

const encoder = new TextEncoder();

interface StreamedBytes {
  /** Yields bytes as they come. */
  readonly write: (signal: AbortSignal) => AsyncGenerator<Uint8Array, void>;
  /** Keeps a connection without bytes open. */
  readonly ping?: string | undefined;
  /** Whether the reader may still read. */
  readonly isAllowed: () => Promise<boolean>;
}

type Piece = ReadableStreamReadResult<Uint8Array>;

/**
 * Bytes that are asked for only when the reader asks for more, so that of a reader who takes
 * nothing one piece is in memory.
 */
export function createByteStream(streamed: StreamedBytes): ReadableStream<Uint8Array> {
  const reader = new ByteReader(streamed);
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: () => reader.cancel(),
    },
    { highWaterMark: 0 },
  );
  // A stream's own reader costs a follower of a log more than anything but the write itself.
  return Object.assign(stream, { getReader: () => reader });
}

/** A timer adds pings and ends what may no longer be read, so that pieces cost nothing for that. */
class ByteReader {
  readonly #streamed: StreamedBytes;
  readonly #stop = new AbortController();
  readonly #written: AsyncGenerator<Uint8Array, void>;
  readonly #closed = Promise.withResolvers<undefined>();
  readonly closed = this.#closed.promise;
  #timer: NodeJS.Timeout | undefined;
  #isAsked = false;
  #waiting: PromiseWithResolvers<Piece> | undefined;
  /** Came after a ping, before the reader asked for more. */
  #early: Piece | undefined;
  #quietSeconds = 0;

  constructor(streamed: StreamedBytes) {
    this.#streamed = streamed;
    this.#written = streamed.write(this.#stop.signal);
    this.closed.catch(() => {});
  }

  /** One caller at a time. */
  read(): Promise<Piece> {
    if (this.#stop.signal.aborted) return this.closed.then((value) => ({ done: true, value }));
    const seconds = limits.accessCheckSeconds;
    this.#timer ??= setInterval(() => void this.#check(), seconds * 1000);
    this.#waiting = Promise.withResolvers<Piece>();
    const { promise } = this.#waiting;
    if (this.#early !== undefined) this.#give(this.#early);
    else if (!this.#isAsked) void this.#ask();
    return promise;
  }

  async cancel(): Promise<void> {
    this.#stop.abort();
    clearInterval(this.#timer);
    this.#closed.resolve(undefined);
    this.#waiting?.resolve({ done: true, value: undefined });
    // A generator that is suspended at a `yield` would keep what it watches.
    await this.#written.return();
  }

  releaseLock(): void {}

  async #ask(): Promise<void> {
    this.#isAsked = true;
    try {
      // SQLite answers at once: to a reader that is as fast, a whole log would be sent in one turn.
      await nextTurn();
      const piece = await this.#written.next();
      this.#isAsked = false;
      this.#quietSeconds = 0;
      if (piece.done) await this.cancel();
      else this.#give(piece);
    } catch (error) {
      await this.#fail(error);
    }
  }

  #give(piece: Piece): void {
    this.#early = this.#waiting === undefined ? piece : undefined;
    this.#waiting?.resolve(piece);
    this.#waiting = undefined;
  }

  async #fail(error: unknown): Promise<void> {
    this.#closed.reject(error);
    this.#waiting?.reject(error);
    await this.cancel();
  }

  async #check(): Promise<void> {
    this.#quietSeconds += limits.accessCheckSeconds;
    try {
      const mayReadOn = await this.#streamed.isAllowed();
      if (!mayReadOn) await this.cancel();
      else if (!this.#stop.signal.aborted) this.#ping();
    } catch (error) {
      await this.#fail(error);
    }
  }

  #ping(): void {
    const { ping } = this.#streamed;
    // A reader who takes nothing gets no more of them.
    const isWaiting = this.#waiting !== undefined;
    if (ping === undefined || !isWaiting || this.#quietSeconds < limits.pingSeconds) return;
    this.#quietSeconds = 0;
    this.#give({ done: false, value: encoder.encode(ping) });
  }
}
