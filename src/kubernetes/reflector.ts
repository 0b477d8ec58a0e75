import { isDeepStrictEqual } from "node:util";
import { backOffMs, sleep } from "./back-off.ts";
import type { KubernetesClient, WatchEvent } from "./kubernetes-client.ts";
import { isExpired, KubernetesError } from "./kubernetes-error.ts";
import { type Indexer, ObjectCache } from "./object-cache.ts";
import type { KubernetesObject, ResourceType, Stored } from "./resources.ts";
import { internStrings } from "./intern-strings.ts";

export interface ReflectorOptions<T extends KubernetesObject> {
  readonly client: KubernetesClient;
  readonly type: ResourceType<T>;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Makes an object smaller before it is kept. `managedFields` are gone already. */
  readonly transform?: (object: Stored<T>) => Stored<T>;
  readonly indexers?: Readonly<Record<string, Indexer<T>>>;
  /** What handlers throw is told to `onError`. */
  readonly onAdded?: (object: Stored<T>) => void;
  /** Of what is kept of the object something changed, apart from its version. */
  readonly onUpdated?: (object: Stored<T>, before: Stored<T>) => void;
  /** Gets the object's last state; of one that was deleted during an outage, the last that was known. */
  readonly onDeleted?: (object: Stored<T>) => void;
  /** Told of lists and watches that fail, too; these are tried again for ever. */
  readonly onError: (error: unknown) => void;
}

/** What the API server holds of one resource, kept up to date. */
export interface Reflector<T extends KubernetesObject> {
  /** Fulfilled when everything has been listed once; rejected when stopped before that. */
  readonly synced: Promise<void>;
  readonly size: number;
  get(name: string): Stored<T> | undefined;
  values(): Iterable<Stored<T>>;
  byIndex(index: string, value: string): readonly Stored<T>[];
  /** Since the server's last word, which comes about once a minute when nothing happens; `Infinity` before the first. */
  readonly secondsSinceReceived: number;
  stop(): Promise<void>;
}

const minWatchSeconds = 240;
const maxWatchSeconds = 300;
/** A watch that lasted this long, or brought anything, was a good one: the next may begin at once. */
const goodWatchMs = 5_000;
const maxRetryMs = 10_000;

/** Lists and watches from now on. Objects that were deleted during an outage are told as such when it is over. */
export function createReflector<T extends KubernetesObject>(
  options: ReflectorOptions<T>,
): Reflector<T> {
  return new WatchingReflector(options);
}

class WatchingReflector<T extends KubernetesObject> implements Reflector<T> {
  readonly #options: ReflectorOptions<T>;
  readonly #cache: ObjectCache<T>;
  readonly #synced = Promise.withResolvers<void>();
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #receivedAt = -Infinity;
  #changes = 0;
  /** Where the next watch goes on; undefined when everything must be listed first. */
  #resourceVersion: string | undefined;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#cache = new ObjectCache(options.indexers ?? {});
    // Whoever does not wait for it need not hear that it never came.
    this.#synced.promise.catch(() => {});
    this.#running = this.#run();
  }

  get synced(): Promise<void> {
    return this.#synced.promise;
  }

  get size(): number {
    return this.#cache.size;
  }

  get(name: string): Stored<T> | undefined {
    return this.#cache.get(name);
  }

  values(): Iterable<Stored<T>> {
    return this.#cache.values();
  }

  byIndex(index: string, value: string): readonly Stored<T>[] {
    return this.#cache.byIndex(index, value);
  }

  get secondsSinceReceived(): number {
    return (performance.now() - this.#receivedAt) / 1000;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#synced.reject(
      new Error(`The reflector of ${this.#options.type.plural} was stopped before it had synced`),
    );
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    let failures = 0;
    while (!signal.aborted) {
      const start = performance.now();
      const changesBefore = this.#changes;
      const error = await this.#listAndWatch().catch((cause: unknown) => cause);
      const serverWaitMs = this.#handleWatchError(error);
      const wasGood = this.#changes > changesBefore || performance.now() - start > goodWatchMs;
      failures = wasGood ? 0 : failures + 1;
      await sleep(serverWaitMs + backOffMs(failures, maxRetryMs), signal).catch(() => {});
    }
  }

  /** Until the server ends the watch. */
  async #listAndWatch(): Promise<void> {
    this.#resourceVersion ??= await this.#list();
    for await (const event of this.#watch(this.#resourceVersion)) {
      this.#resourceVersion = event.object.metadata.resourceVersion;
      this.#handleEvent(event);
    }
  }

  /** How long the server wants to be left alone, in milliseconds. */
  #handleWatchError(error: unknown): number {
    if (error === undefined || this.#stop.signal.aborted) return 0;
    if (!canResumeWatch(error)) this.#resourceVersion = undefined;
    if (!isExpired(error)) this.#options.onError(error);
    return error instanceof KubernetesError ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
  }

  async #list(): Promise<string> {
    const { client, type, labelSelector, fieldSelector } = this.#options;
    const unlisted = new Set(Array.from(this.#cache.values(), (object) => object.metadata.name));
    let version = "";
    for await (const page of client.list(type, {
      labelSelector,
      fieldSelector,
      signal: this.#stop.signal,
    })) {
      this.#receivedAt = performance.now();
      for (const object of page.items) {
        unlisted.delete(object.metadata.name);
        this.#put(object);
      }
      version = page.resourceVersion;
    }
    for (const name of unlisted) this.#delete(name);
    this.#synced.resolve();
    return version;
  }

  #watch(resourceVersion: string): AsyncIterable<WatchEvent<T>> {
    const { client, type, labelSelector, fieldSelector } = this.#options;
    const timeoutSeconds = Math.round(
      minWatchSeconds + Math.random() * (maxWatchSeconds - minWatchSeconds),
    );
    const { signal } = this.#stop;
    return client.watch(type, {
      resourceVersion,
      timeoutSeconds,
      labelSelector,
      fieldSelector,
      signal,
    });
  }

  #handleEvent(event: WatchEvent<T>): void {
    this.#receivedAt = performance.now();
    if (event.type !== "BOOKMARK") this.#changes++;
    switch (event.type) {
      case "ADDED":
      case "MODIFIED":
        this.#put(event.object);
        break;
      case "DELETED":
        this.#delete(event.object.metadata.name, event.object);
        break;
      case "BOOKMARK":
        break;
    }
  }

  #put(received: Stored<T>): void {
    const { name, uid, resourceVersion } = received.metadata;
    const before = this.#cache.get(name);
    if (before?.metadata.resourceVersion === resourceVersion) return;
    const known = before?.metadata.uid === uid ? before : undefined;
    if (known === undefined) this.#delete(name);
    this.#callHandler(() => {
      const object = this.#transform(received);
      const renewed = known && { ...known, metadata: { ...known.metadata, resourceVersion } };
      if (renewed !== undefined && isDeepStrictEqual(renewed, object)) {
        this.#cache.put(renewed);
        return;
      }
      internStrings(object);
      this.#cache.put(object);
      if (known === undefined) this.#options.onAdded?.(object);
      else this.#options.onUpdated?.(object, known);
    });
  }

  #delete(name: string, last?: Stored<T>): void {
    const object = this.#cache.get(name);
    if (object === undefined) return;
    this.#cache.delete(name);
    this.#callHandler(() =>
      this.#options.onDeleted?.(last === undefined ? object : this.#transform(last)),
    );
  }

  #transform(received: Stored<T>): Stored<T> {
    const object = withoutManagedFields(received);
    return this.#options.transform?.(object) ?? object;
  }

  /** An error of a handler must not end the watch. */
  #callHandler(handle: () => void): void {
    try {
      handle();
    } catch (error) {
      this.#options.onError(error);
    }
  }
}

/** A copy, since an object that a property was deleted from takes several times the memory. */
function withoutManagedFields<T extends KubernetesObject>(object: Stored<T>): Stored<T> {
  const { managedFields, ...metadata } = object.metadata;
  return managedFields === undefined ? object : { ...object, metadata };
}

/** Whether a watch may go on where it was. Where the server refuses that, a list is right in any case. */
function canResumeWatch(error: unknown): boolean {
  return error instanceof KubernetesError && [undefined, 429, 503].includes(error.status);
}
