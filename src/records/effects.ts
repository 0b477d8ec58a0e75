/** Effects of a transaction that others wait for. */
export interface Effects {
  /** Ids of jobs and batches. */
  readonly changed: Set<string>;
  /** Ids of webhooks with something to send. */
  readonly sending: Set<string>;
  /** Ids of jobs that begin to wait for a worker: new ones, and those whose worker is gone. */
  readonly waiting: Set<string>;
  /** Ids of jobs for which a worker begins. */
  readonly begun: Set<string>;
  /** Ids of jobs whose worker has to be stopped. */
  readonly cancelling: Set<string>;
  /** Ids of jobs that have ended. */
  readonly ended: Set<string>;
}

export function noEffects(): Effects {
  return {
    changed: new Set(),
    sending: new Set(),
    waiting: new Set(),
    begun: new Set(),
    cancelling: new Set(),
    ended: new Set(),
  };
}
