import type { KubernetesClient } from "../kubernetes/kubernetes-client.ts";
import type { Reflector } from "../kubernetes/reflector.ts";
import type { KubernetesObject, ResourceType, Stored } from "../kubernetes/resources.ts";
import {
  type WatchedResource,
  type WatchResourceOptions,
  watchResource,
} from "./watch-resource.ts";

/** Watches a resource by each of the clients, into what looks like one cache. */
export function watchNamespaces<T extends KubernetesObject>(
  clients: readonly KubernetesClient[],
  options: Omit<WatchResourceOptions<T>, "client">,
): WatchedResource<T> {
  const watches = clients.map((client) => watchResource({ ...options, client }));
  const [only, ...others] = watches;
  if (only === undefined) throw new TypeError("There is no namespace to watch");
  return others.length === 0 ? only : new MergedWatch(options.type, watches);
}

class MergedWatch<T extends KubernetesObject> implements WatchedResource<T> {
  readonly type: ResourceType<T>;
  readonly cache: Reflector<T>;
  readonly synced: Promise<void>;
  readonly #watches: readonly WatchedResource<T>[];

  constructor(type: ResourceType<T>, watches: readonly WatchedResource<T>[]) {
    this.type = type;
    this.#watches = watches;
    this.cache = new MergedCache(watches.map(({ cache }) => cache));
    this.synced = this.cache.synced;
  }

  get resource(): string {
    return this.type.plural;
  }

  get size(): number {
    return this.cache.size;
  }

  get secondsSinceReceived(): number {
    return this.cache.secondsSinceReceived;
  }

  get problem(): string | undefined {
    return this.#watches.find(({ problem }) => problem !== undefined)?.problem;
  }

  get isHung(): boolean {
    return this.#watches.some(({ isHung }) => isHung);
  }

  onChange(listener: (object: Stored<T>) => void): () => void {
    const ends = this.#watches.map((watch) => watch.onChange(listener));
    return () => {
      for (const end of ends) end();
    };
  }

  hasSeen(object: Stored<T>): boolean {
    return this.#watches.some((watch) => watch.hasSeen(object));
  }

  stop(): Promise<void> {
    return this.cache.stop();
  }
}

class MergedCache<T extends KubernetesObject> implements Reflector<T> {
  readonly synced: Promise<void>;
  readonly #caches: readonly Reflector<T>[];

  constructor(caches: readonly Reflector<T>[]) {
    this.#caches = caches;
    this.synced = Promise.all(caches.map(({ synced }) => synced)).then(() => {});
    // Without a caller that waits, the rejection would be unhandled.
    this.synced.catch(() => {});
  }

  get size(): number {
    return this.#caches.reduce((sum, { size }) => sum + size, 0);
  }

  /** Of the one that was silent for the longest time. */
  get secondsSinceReceived(): number {
    return Math.max(...this.#caches.map(({ secondsSinceReceived }) => secondsSinceReceived));
  }

  get(key: string): Stored<T> | undefined {
    for (const cache of this.#caches) {
      const object = cache.get(key);
      if (object !== undefined) return object;
    }
    return undefined;
  }

  *values(): Iterable<Stored<T>> {
    for (const cache of this.#caches) yield* cache.values();
  }

  byIndex(index: string, value: string): readonly Stored<T>[] {
    return this.#caches.flatMap((cache) => cache.byIndex(index, value));
  }

  async stop(): Promise<void> {
    await Promise.all(this.#caches.map((cache) => cache.stop()));
  }
}
