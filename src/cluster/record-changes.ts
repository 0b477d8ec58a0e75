import type { Source } from "../../operator/runtime/controller.ts";
import type { Records } from "../records/open-records.ts";

/** A job that is worked on changes many times a second; its status is not shown that often. */
const gatherMs = 500;

export interface RecordChanges extends Source {
  /** Asks for a look at jobs and batches at once. */
  add(ids: readonly string[]): void;
  close(): void;
}

/** Ids of jobs and batches whose records change. */
export function recordChanges({ changes }: Pick<Records, "changes">): RecordChanges {
  const waiting = new Map<string, NodeJS.Timeout>();
  /** Those that were added before anybody listened. */
  const early = new Set<string>();
  let listener: Parameters<Source["subscribe"]>[0] = (id) => early.add(id);
  const stops = [
    changes.onCancelling((id) => listener(id, "urgent")),
    changes.onChanged((id) => {
      if (waiting.has(id)) return;
      const timer = setTimeout(() => {
        waiting.delete(id);
        listener(id, "normal");
      }, gatherMs);
      waiting.set(id, timer);
    }),
  ];
  return {
    keys: () => [],
    subscribe(added) {
      listener = added;
      for (const id of early) listener(id, "normal");
      early.clear();
      return () => {
        listener = () => {};
      };
    },
    add(ids) {
      for (const id of ids) listener(id, "normal");
    },
    close() {
      for (const stop of stops) stop();
      for (const timer of waiting.values()) clearTimeout(timer);
    },
  };
}
