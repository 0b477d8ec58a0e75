type Listener = (id: string) => void;

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
  readonly #cancellingListeners = new Set<Listener>();
  readonly #changedListeners = new Set<Listener>();
  readonly #sendingListeners = new Set<Listener>();
  readonly #endedListeners = new Set<Listener>();
  readonly #endedHereListeners = new Set<Listener>();
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
   * Calls the listener for every job whose worker has to be stopped.
   * @returns a function that removes the listener
   */
  onCancelling(listener: Listener): () => void {
    this.#cancellingListeners.add(listener);
    return () => this.#cancellingListeners.delete(listener);
  }

  /**
   * Calls the listener for every job and batch that changes.
   * @returns a function that removes the listener
   */
  onChanged(listener: Listener): () => void {
    this.#changedListeners.add(listener);
    return () => this.#changedListeners.delete(listener);
  }

  /**
   * Calls the listener for every webhook that has something to send.
   * @returns a function that removes the listener
   */
  onSending(listener: Listener): () => void {
    this.#sendingListeners.add(listener);
    return () => this.#sendingListeners.delete(listener);
  }

  /**
   * Calls the listener for every job that ends.
   * @returns a function that removes the listener
   */
  onEnded(listener: Listener): () => void {
    this.#endedListeners.add(listener);
    return () => this.#endedListeners.delete(listener);
  }

  /**
   * Calls the listener for every job whose end this process records, and no other replica.
   * @returns a function that removes the listener
   */
  onEndedHere(listener: Listener): () => void {
    this.#endedHereListeners.add(listener);
    return () => this.#endedHereListeners.delete(listener);
  }

  /**
   * Calls the listener for what other replicas commit, after the listeners for what all commit.
   * @returns a function that removes the listener
   */
  onRemoteCommit(listener: (effects: CommittedChanges) => void): () => void {
    this.#remoteCommitListeners.add(listener);
    return () => this.#remoteCommitListeners.delete(listener);
  }

  /**
   * Calls the listener when something may have been committed of which no listener was notified: by
   * other replicas, or by a commit that failed. It has to be read.
   * @returns a function that removes the listener
   */
  onGap(listener: () => void): () => void {
    this.#gapListeners.add(listener);
    return () => this.#gapListeners.delete(listener);
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
    for (const jobId of effects.ended) {
      for (const listener of this.#endedHereListeners) listener(jobId);
    }
  }

  #publishToAll(effects: CommittedChanges): void {
    const { changed, waiting } = effects;
    const watched = changed.size + waiting.size > 0 ? [...changed, everything] : [];
    this.#wake(watched.flatMap((id) => [...(this.#watchers.get(id) ?? [])]));
    for (const id of changed) for (const listener of this.#changedListeners) listener(id);
    for (const id of effects.sending) for (const listener of this.#sendingListeners) listener(id);
    for (const jobId of effects.cancelling) {
      for (const listener of this.#cancellingListeners) listener(jobId);
    }
    for (const jobId of effects.ended) {
      for (const listener of this.#endedListeners) listener(jobId);
    }
  }

  #wake(watchers: readonly Watcher[]): void {
    for (const watcher of watchers) {
      watcher.changed = true;
      watcher.wake();
    }
  }
}

/** Effects of a transaction that others wait for. */
export interface CommittedChanges {
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

export function noChanges(): CommittedChanges {
  return {
    changed: new Set(),
    sending: new Set(),
    waiting: new Set(),
    begun: new Set(),
    cancelling: new Set(),
    ended: new Set(),
  };
}
