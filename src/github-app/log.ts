/** Writes an entry of the service's log. */
export type Log = (level: "info" | "error", message: string, fields?: Readonly<Record<string, unknown>>) => void;
