/** What happened in a test so far, in order, and the way to wait for more. */
export interface Happenings {
  readonly all: readonly string[];
  record(happening: string): void;
  /** Resolves when the condition holds. */
  until(condition: (all: readonly string[]) => boolean): Promise<void>;
}

export function createHappenings(): Happenings {
  const all: string[] = [];
  const waiting = new Set<() => void>();
  return {
    all,
    record(happening) {
      all.push(happening);
      for (const look of waiting) look();
    },
    async until(condition) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const look = () => {
        if (condition(all)) resolve();
      };
      waiting.add(look);
      look();
      await promise;
      waiting.delete(look);
    },
  };
}
