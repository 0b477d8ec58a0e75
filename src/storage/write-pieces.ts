/**
 * Writes a source piece by piece. Also a source that is stuck ends when the signal is aborted; no
 * write is under way any more when this has ended.
 */
export async function writePieces(
  source: AsyncIterable<Uint8Array>,
  write: (piece: Uint8Array) => Promise<void>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const pieces = source[Symbol.asyncIterator]();
  let isRead = false;
  try {
    for (;;) {
      signal?.throwIfAborted();
      const { done, value } = await unlessAborted(pieces.next(), signal);
      isRead = done === true;
      if (isRead) return;
      await write(value);
    }
  } finally {
    // Not awaited: what is stuck does not end either.
    if (!isRead) void pieces.return?.().catch(() => {});
  }
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener("abort", onAbort);
  work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  return promise;
}
