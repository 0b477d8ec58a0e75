import type { Source } from "../../controller-runtime/controller.ts";
import type { Records } from "../../records/open-records.ts";

/** A job that is worked on changes many times a second; its status is not shown that often. */
const coalesceMs = 500;

export interface RecordChangeSource extends Source {
  /** Asks for a look at jobs and batches at once. */
  enqueue(ids: readonly string[]): void;
  close(): void;
}

/** Ids of jobs and batches whose records change. */
export function createRecordChangeSource({
  changes,
}: Pick<Records, "changes">): RecordChangeSource {
  const timers = new Map<string, NodeJS.Timeout>();
  /** Those that were added before anybody listened. */
  const addedEarly = new Set<string>();
  let listener: Parameters<Source["subscribe"]>[0] = (id) => addedEarly.add(id);
  const stops = [
    changes.onCancelling((id) => listener(id, "urgent")),
    changes.onChanged((id) => {
      if (timers.has(id)) return;
      const timer = setTimeout(() => {
        timers.delete(id);
        listener(id, "normal");
      }, coalesceMs);
      timers.set(id, timer);
    }),
  ];
  return {
    keys: () => [],
    subscribe(added) {
      listener = added;
      for (const id of addedEarly) listener(id, "normal");
      addedEarly.clear();
      return () => {
        listener = () => {};
      };
    },
    enqueue(ids) {
      for (const id of ids) listener(id, "normal");
    },
    close() {
      for (const stop of stops) stop();
      for (const timer of timers.values()) clearTimeout(timer);
    },
  };
}
