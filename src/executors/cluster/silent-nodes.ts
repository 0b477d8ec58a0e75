/** The logs of a node that cannot be read for so long count as lost: it restarts within that. */
const lostAfterMs = 600_000;
/** Failures of a node that are further apart are not in a row: a read fails within a minute. */
const failureGapMs = 180_000;

/** Nodes of which the last read failed. */
export class SilentNodes {
  /** When the first failure in a row was, and the last. */
  readonly #failures = new Map<string, { readonly since: number; readonly last: number }>();

  answered(node: string): void {
    this.#failures.delete(node);
  }

  /** Counts a failure; returns whether there were no others for so long that the node is lost. */
  failed(node: string): boolean {
    const now = performance.now();
    const known = this.#failures.get(node);
    const isInRow = known !== undefined && now - known.last < failureGapMs;
    const since = isInRow ? known.since : now;
    this.#failures.set(node, { since, last: now });
    return now - since >= lostAfterMs;
  }
}
