/** Writes one entry; `fields` are part of it, and errors among them have stack and causes. */
export type Log = (
  level: "info" | "warn" | "error",
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void;

/** A log of one JSON document for each line. */
export function jsonLog(stream: NodeJS.WritableStream, now: () => Date): Log {
  return (level, message, fields = {}) => {
    const entry = { at: now().toISOString(), level, message, ...fields };
    stream.write(`${JSON.stringify(entry, errorsAsText)}\n`);
  };
}

function errorsAsText(_key: string, value: unknown): unknown {
  return value instanceof Error ? describeError(value) : value;
}

function describeError(error: Error): string {
  const text = error.stack ?? error.message;
  return error.cause instanceof Error ? `${text}\ncaused by ${describeError(error.cause)}` : text;
}
