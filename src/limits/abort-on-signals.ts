/** Exit codes of a process that a signal ended: 128 and the number of the signal. */
const signalExits = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/** Aborts at the first signal that asks the process to end, and sets its exit code. */
export function abortOnSignals(): AbortSignal {
  const stop = new AbortController();
  for (const [signal, code] of Object.entries(signalExits)) {
    process.on(signal, () => {
      if (stop.signal.aborted) return;
      process.exitCode = code;
      stop.abort();
    });
  }
  return stop.signal;
}
