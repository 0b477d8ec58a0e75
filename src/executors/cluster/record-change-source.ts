import type { Source } from "../../controller-runtime/controller.ts";
import type { Records } from "../../records/open-records.ts";

/** A job changes many times a second while it is worked on; its status is written less often. */
const coalesceMs = 500;

export interface RecordChangeSource extends Source {
  /** Reconciles jobs and batches at once. */
  enqueue(ids: readonly string[]): void;
  close(): void;
}

/** Ids of jobs and batches whose records change. */
export function createRecordChangeSource({
  changes,
}: Pick<Records, "changes">): RecordChangeSource {
  return new CoalescingSource(changes);
}

class CoalescingSource implements RecordChangeSource {
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly #unsubscribe: readonly (() => void)[];
  /** Nobody before the subscription, at which everything is reconciled. */
  #listener: Parameters<Source["subscribe"]>[0] = () => {};

  constructor(changes: Records["changes"]) {
    this.#unsubscribe = [
      changes.onCancelling((id) => this.#listener(id, "urgent")),
      changes.onChanged((id) => this.#enqueueLater(id)),
      changes.onRemoteCommit(({ waiting }) => this.enqueue([...waiting])),
    ];
  }

  keys(): Iterable<string> {
    return [];
  }

  subscribe(listener: Parameters<Source["subscribe"]>[0]): () => void {
    this.#listener = listener;
    return () => {
      this.#listener = () => {};
    };
  }

  enqueue(ids: readonly string[]): void {
    for (const id of ids) this.#listener(id, "normal");
  }

  close(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  #enqueueLater(id: string): void {
    if (this.#timers.has(id)) return;
    const timer = setTimeout(() => {
      this.#timers.delete(id);
      this.#listener(id, "normal");
    }, coalesceMs);
    this.#timers.set(id, timer);
  }
}
