/** What has a time to live. */
export type Kept = "jobs" | "logs" | "artifacts" | "models";

/**
 * Milliseconds for which things are kept; for good if there is no number, or `Infinity`.
 * `jobs`: after a job's end, with all that it has; `logs` and `artifacts`: after their job's end;
 * `models`: after an upload was last named by a job, or was sent.
 */
export type KeptTimes = Readonly<Partial<Record<Kept, number | undefined>>>;

export interface Retention extends KeptTimes {
  /** Of projects that have other times; what one of them leaves out is as for all. */
  readonly projects?: ReadonlyMap<string, KeptTimes>;
}

/** Times before which something has expired. */
export interface Expiry {
  /** The latest of all projects. */
  readonly latest: Date;
  /** Undefined for a project that keeps it for good. */
  readonly findBefore: (project: string) => Date | undefined;
}

/** Undefined where every project keeps it for good. */
export function findExpiry(retention: Retention, kept: Kept, now: Date): Expiry | undefined {
  const times = [...(retention.projects?.values() ?? [])].map((own) => own[kept]);
  const shortest = Math.min(...[retention[kept], ...times].map((ms) => ms ?? Infinity));
  const latest = subtract(now, shortest);
  if (latest === undefined) return undefined;
  return {
    latest,
    findBefore: (project) =>
      subtract(now, retention.projects?.get(project)?.[kept] ?? retention[kept]),
  };
}

function subtract(now: Date, ms = Infinity): Date | undefined {
  return ms === Infinity ? undefined : new Date(now.getTime() - ms);
}
