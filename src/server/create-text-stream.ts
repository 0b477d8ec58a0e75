import { limits } from "../contract/limits.ts";

interface StreamedTexts {
  /** Yields texts as they come and returns what follows the last one. */
  readonly write: (signal: AbortSignal) => AsyncGenerator<string, string>;
  /** Keeps a connection without texts open. */
  readonly ping?: string | undefined;
  /** Whether the reader may still read. */
  readonly isAllowed: () => Promise<boolean>;
}

/**
 * Texts as bytes. They are asked for only when the reader asks for more, so that of a reader who
 * takes nothing one text is in memory.
 */
export function createTextStream(streamed: StreamedTexts): ReadableStream<Uint8Array> {
  const stop = new AbortController();
  const written = streamed.write(stop.signal);
  const texts = paceTexts(written, streamed);
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value: text } = await texts.next();
        if (stop.signal.aborted) return;
        if (text !== "") controller.enqueue(encoder.encode(text));
        if (done) controller.close();
      },
      async cancel() {
        stop.abort();
        // A generator that is suspended at a `yield` would keep what it watches.
        await texts.return("");
        await written.return("");
      },
    },
    { highWaterMark: 0 },
  );
}

/** Adds pings, and ends early where the reader may no longer read. */
async function* paceTexts(
  written: AsyncGenerator<string, string>,
  { ping, isAllowed }: StreamedTexts,
): AsyncGenerator<string, string> {
  const mayReadOn = createAccessCheck(isAllowed);
  let pending = written.next();
  let lastSent = Date.now();
  for (;;) {
    const next = await resolveInTime(pending, limits.accessCheckSeconds);
    if (!(await mayReadOn())) return "";
    if (next?.done) return next.value;
    if (next) {
      yield next.value;
      pending = written.next();
    } else if (ping !== undefined && Date.now() - lastSent >= limits.pingSeconds * 1000) {
      yield ping;
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
    if (Date.now() - checked < limits.accessCheckSeconds * 1000) return true;
    checked = Date.now();
    return isAllowed();
  };
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
