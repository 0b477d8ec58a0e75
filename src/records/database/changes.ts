/** Kinds of effects of a transaction that others wait for, each with ids. */
export const changeKinds = [
  // Jobs and batches.
  "changed",
  // Webhooks with something to send.
  "sending",
  // Jobs that begin to wait for a worker: new ones, and those whose worker is gone.
  "waiting",
  // Jobs for which a worker begins.
  "begun",
  // Jobs whose worker has to be stopped.
  "cancelling",
  // Jobs that have ended.
  "ended",
] as const;

type ChangeKind = (typeof changeKinds)[number];

export type CommittedChanges = Readonly<Record<ChangeKind, Set<string>>>;

export function noChanges(): CommittedChanges {
  return forEachKind(() => new Set());
}

export function forEachKind<T>(make: (kind: ChangeKind) => T): Record<ChangeKind, T> {
  const entries = changeKinds.map((kind) => [kind, make(kind)]);
  return Object.fromEntries(entries) as Record<ChangeKind, T>;
}

interface Subscription {
  /** `endedHere`: jobs whose end this process records, and no other replica. */
  readonly kind: ChangeKind | "endedHere";
  readonly listener: (id: string) => void;
}

interface Watcher {
  /** Whether something changed since the last yield. */
  changed: boolean;
  wake: () => void;
}

/** Stands for all ids. */
const everything = "";

/** Publishes to this process what transactions commit, so that nothing has to poll. */
export class Changes {
  readonly #watchers = new Map<string, Set<Watcher>>();
  readonly #subscriptions = new Set<Subscription>();
  readonly #remoteCommitListeners = new Set<(effects: CommittedChanges) => void>();
  readonly #gapListeners = new Set<() => void>();

  /**
   * Yields at once, and again after each change of the job or batch; changes while the caller is
   * busy are yielded as one. Ends when the signal is aborted.
   */
  async *watch(id: string, signal: AbortSignal): AsyncGenerator<void> {
    const watcher: Watcher = { changed: true, wake: () => {} };
    const watchers = this.#watchers.get(id) ?? new Set();
    this.#watchers.set(id, watchers.add(watcher));
    const onAbort = () => watcher.wake();
    signal.addEventListener("abort", onAbort);
    try {
      while (!signal.aborted) {
        if (watcher.changed) {
          watcher.changed = false;
          yield;
        } else {
          const { promise, resolve } = Promise.withResolvers<void>();
          watcher.wake = resolve;
          await promise;
        }
      }
    } finally {
      signal.removeEventListener("abort", onAbort);
      watchers.delete(watcher);
      if (watchers.size === 0 && this.#watchers.get(id) === watchers) this.#watchers.delete(id);
    }
  }

  /** As `watch()`, for changes of any job or batch, and for new ones. */
  watchAll(signal: AbortSignal): AsyncGenerator<void> {
    return this.watch(everything, signal);
  }

  /**
   * Calls the listener for each id of a kind. Returns a function that removes the listener, as the
   * methods below do.
   */
  on(kind: Subscription["kind"], listener: Subscription["listener"]): () => void {
    return subscribe(this.#subscriptions, { kind, listener });
  }

  /** Calls the listener for what other replicas commit, after the listeners for what all commit. */
  onRemoteCommit(listener: (effects: CommittedChanges) => void): () => void {
    return subscribe(this.#remoteCommitListeners, listener);
  }

  /**
   * Calls the listener when other replicas, or a commit that failed, may have committed something
   * that no listener was notified of. It has to be read.
   */
  onGap(listener: () => void): () => void {
    return subscribe(this.#gapListeners, listener);
  }

  publishRemoteCommit(effects: CommittedChanges): void {
    this.#publishToAll(effects);
    for (const listener of this.#remoteCommitListeners) listener(effects);
  }

  /** Says that anything may have changed. */
  publishGap(): void {
    this.#wake([...this.#watchers.values()].flatMap((watchers) => [...watchers]));
    for (const listener of this.#gapListeners) listener();
  }

  /** Publishes what this process has committed. */
  publish(effects: CommittedChanges): void {
    this.#publishToAll(effects);
    this.#notify("endedHere", effects.ended);
  }

  #publishToAll(effects: CommittedChanges): void {
    const { changed, waiting } = effects;
    const watched = changed.size + waiting.size > 0 ? [...changed, everything] : [];
    this.#wake(watched.flatMap((id) => [...(this.#watchers.get(id) ?? [])]));
    for (const kind of changeKinds) this.#notify(kind, effects[kind]);
  }

  #notify(kind: Subscription["kind"], ids: ReadonlySet<string>): void {
    const subscriptions = [...this.#subscriptions].filter((each) => each.kind === kind);
    for (const id of ids) for (const { listener } of subscriptions) listener(id);
  }

  #wake(watchers: readonly Watcher[]): void {
    for (const watcher of watchers) {
      watcher.changed = true;
      watcher.wake();
    }
  }
}

function subscribe<T>(listeners: Set<T>, listener: T): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
