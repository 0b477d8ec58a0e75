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
  const happened = new ChangeSignal();
  return {
    all,
    record(happening) {
      all.push(happening);
      happened.notify();
    },
    async until(condition) {
      await happened.until(`${String(condition)} holds`, () => condition(all));
    },
  };
}
