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
    stream.write(`${escapeHidden(JSON.stringify(entry, errorsAsText))}\n`);
  };
}

/**
 * What JSON leaves as it is and terminals act on or do not show: C1 controls, line separators, marks
 * of direction, characters without a form.
 */
const hidden = /[\u007f-\u009f\u2028\u2029\ufff9-\ufffb\p{Default_Ignorable_Code_Point}]/gu;

function escapeHidden(json: string): string {
  return json.replace(hidden, (character) => character.split("").map(escapeUnit).join(""));
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

function errorsAsText(_key: string, value: unknown): unknown {
  return value instanceof Error ? describeError(value) : value;
}

function describeError(error: Error): string {
  const text = error.stack ?? error.message;
  return error.cause instanceof Error ? `${text}\ncaused by ${describeError(error.cause)}` : text;
}
