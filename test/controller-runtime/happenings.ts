import { ChangeSignal } from "../support/until.ts";

/** What happened in a test so far, in order, and the way to wait for more. */
export interface Happenings {
  readonly all: readonly string[];
  record(happening: string): void;
  /** Resolves when the condition holds. */
  until(condition: (all: readonly string[]) => boolean): Promise<void>;
}

export function createHappenings(): Happenings {
  const all: string[] = [];
  const changed = new ChangeSignal();
  return {
    all,
    record(happening) {
      all.push(happening);
      changed.notify();
    },
    async until(condition) {
      await changed.until(`what happened fits ${String(condition)}`, () => condition(all));
    },
  };
}
