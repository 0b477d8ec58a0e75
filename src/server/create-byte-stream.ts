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

/**
 * Bytes that are asked for only when the reader asks for more, so that of a reader who takes
 * nothing one piece is in memory.
 */
export function createByteStream(streamed: StreamedBytes): ReadableStream<Uint8Array> {
  const stop = new AbortController();
  const written = streamed.write(stop.signal);
  const pieces = paceBytes(written, streamed);
  const end = async () => {
    stop.abort();
    // A generator that is suspended at a `yield` would keep what it watches.
    await pieces.return();
    await written.return();
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await pieces.next();
          if (stop.signal.aborted) return;
          if (!done) return controller.enqueue(value);
          controller.close();
        } catch (error) {
          controller.error(error);
        }
        await end();
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  );
}

/** Adds pings, and ends early where the reader may no longer read. */
async function* paceBytes(
  written: AsyncGenerator<Uint8Array, void>,
  { ping, isAllowed }: StreamedBytes,
): AsyncGenerator<Uint8Array, void> {
  const mayReadOn = createAccessCheck(isAllowed);
  let pending = written.next();
  let lastSent = Date.now();
  for (;;) {
    const next = await resolveInTime(pending, limits.accessCheckSeconds);
    if (next?.done || !(await mayReadOn())) return;
    if (next) {
      yield next.value;
      pending = written.next();
    } else if (ping !== undefined && msFrom(lastSent) >= limits.pingSeconds * 1000) {
      yield encoder.encode(ping);
    } else {
      continue;
    }
    lastSent = Date.now();
  }
}

/** Asks at most once in the time in which a revocation takes effect. */
function createAccessCheck(isAllowed: () => Promise<boolean>): () => Promise<boolean> {
  let checked = Date.now();
  return async () => {
    if (msFrom(checked) < limits.accessCheckSeconds * 1000) return true;
    checked = Date.now();
    return isAllowed();
  };
}

/** Since then; until then where the clock was set back. */
function msFrom(at: number): number {
  return Math.abs(Date.now() - at);
}

/** Undefined where the time is over before the promise resolves. */
async function resolveInTime<T>(promise: Promise<T>, seconds: number): Promise<T | undefined> {
  const { promise: timeout, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(resolve, seconds * 1000, undefined);
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
