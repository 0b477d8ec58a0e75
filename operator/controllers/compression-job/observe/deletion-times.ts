import type { KubernetesObject, Stored } from "../../../../src/kubernetes/resources.ts";

/** The oldest are forgotten first. */
const maxTimes = 20_000;

/**
 * When this process saw that an object is being deleted, by its own clock: those of the API server
 * and of the nodes may differ.
 */
export class DeletionTimes {
  readonly #times = new Map<string, number>();

  /** Milliseconds since 1970; undefined where the object is not being deleted. */
  note({ metadata }: Stored<KubernetesObject>, now: number): number | undefined {
    const { uid, deletionTimestamp } = metadata;
    if (deletionTimestamp === undefined) return undefined;
    const known = this.#times.get(uid);
    if (known !== undefined) return known;
    this.#times.set(uid, now);
    const [oldest] = this.#times.keys();
    if (oldest !== undefined && this.#times.size > maxTimes) this.#times.delete(oldest);
    return now;
  }
}
