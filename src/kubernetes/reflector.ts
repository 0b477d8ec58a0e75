import { isDeepStrictEqual } from "node:util";
import type { KubernetesClient, WatchEvent } from "./kubernetes-client.ts";
import { isExpired, isForbidden, KubernetesError } from "./kubernetes-error.ts";
import { type Indexer, ObjectCache } from "./object-cache.ts";
import { isOfDeletedNamespace } from "./namespaces.ts";
import { objectKey } from "./object-key.ts";
import type { KubernetesObject, ResourceType, Stored } from "./resources.ts";
import { backOffMs, delay } from "../limits/retry.ts";

export interface ReflectorOptions<T extends KubernetesObject> extends ObjectHandlers<T> {
  readonly client: KubernetesClient;
  readonly type: ResourceType<T>;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** How long `synced` waits for a list that is forbidden; for good without it. */
  readonly forbiddenLimitMs?: number | undefined;
  /** Called with what handlers throw and with errors of lists and watches, which are retried. */
  readonly onError: (error: unknown) => void;
}

/** A cache of a resource that is kept up to date by a list and a watch. */
export interface Reflector<T extends KubernetesObject> extends Pick<
  ObjectCache<T>,
  "get" | "values" | "size"
> {
  /**
   * Fulfilled after the first complete list, or once nothing can be read: the client's namespace is
   * deleted, or the list is forbidden for too long. Rejected when stopped before.
   */
  readonly synced: Promise<void>;
  byIndex(index: string, value: string): readonly Stored<T>[];
  /**
   * Time since the server sent anything, which is about once a minute without changes; `Infinity`
   * before the first response.
   */
  readonly secondsSinceReceived: number;
  stop(): Promise<void>;
}

const minWatchSeconds = 240;
const maxWatchSeconds = 300;
/** A watch that lasted so long, or brought any change, succeeded: the next starts without delay. */
const goodWatchMs = 5_000;
const maxRetryMs = 10_000;

/**
 * Starts to list and watch. `onDeleted` is also called for objects that were deleted during an
 * outage, when it is over.
 */
export function createReflector<T extends KubernetesObject>(
  options: ReflectorOptions<T>,
): Reflector<T> {
  return new WatchingReflector(options);
}

class WatchingReflector<T extends KubernetesObject> implements Reflector<T> {
  readonly #options: ReflectorOptions<T>;
  readonly #objects: ObservedObjects<T>;
  readonly #synced = Promise.withResolvers<void>();
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  readonly #startedAt = performance.now();
  #receivedAt = -Infinity;
  #changes = 0;
  /** Where the next watch starts; undefined when a list has to come first. */
  #resourceVersion: string | undefined;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#objects = new ObservedObjects(options);
    // Without a caller that waits, the rejection would be unhandled.
    this.#synced.promise.catch(() => {});
    this.#running = this.#run();
  }

  get synced(): Promise<void> {
    return this.#synced.promise;
  }

  get size(): number {
    return this.#objects.cache.size;
  }

  get(key: string): Stored<T> | undefined {
    return this.#objects.cache.get(key);
  }

  values(): Iterable<Stored<T>> {
    return this.#objects.cache.values();
  }

  byIndex(index: string, value: string): readonly Stored<T>[] {
    return this.#objects.cache.byIndex(index, value);
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
      if (await this.#isUnreadable(error)) this.#synced.resolve();
      const wasGood = this.#changes > changesBefore || performance.now() - start > goodWatchMs;
      failures = wasGood ? 0 : failures + 1;
      await delay(serverWaitMs + backOffMs(failures, maxRetryMs), signal).catch(() => {});
    }
  }

  /** Returns when the server ends the watch. */
  async #listAndWatch(): Promise<void> {
    this.#resourceVersion ??= await this.#list();
    for await (const event of this.#watch(this.#resourceVersion)) {
      this.#resourceVersion = event.object.metadata.resourceVersion;
      this.#handleEvent(event);
    }
  }

  /** Returns the delay that the server asks for, in milliseconds. */
  #handleWatchError(error: unknown): number {
    if (error === undefined || this.#stop.signal.aborted) return 0;
    if (!canResumeWatch(error)) this.#resourceVersion = undefined;
    if (!isExpired(error)) this.#options.onError(error);
    return error instanceof KubernetesError ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
  }

  /** An API server that starts may forbid for a moment what is allowed. */
  async #isUnreadable(error: unknown): Promise<boolean> {
    const { client, forbiddenLimitMs = Infinity } = this.#options;
    const isLate = performance.now() - this.#startedAt >= forbiddenLimitMs;
    if (isLate && isForbidden(error)) return true;
    return isOfDeletedNamespace(client, error).catch(() => false);
  }

  async #list(): Promise<string> {
    const { client, type, labelSelector, fieldSelector } = this.#options;
    const { signal } = this.#stop;
    const unlisted = new Set(this.#objects.cache.keys());
    let version = "";
    for await (const page of client.list(type, { labelSelector, fieldSelector, signal })) {
      this.#receivedAt = performance.now();
      for (const object of page.items) {
        unlisted.delete(objectKey(object.metadata));
        this.#objects.put(object);
      }
      version = page.resourceVersion;
    }
    for (const key of unlisted) this.#objects.delete(key);
    this.#synced.resolve();
    return version;
  }

  #watch(resourceVersion: string): AsyncIterable<WatchEvent<T>> {
    const { client, type, labelSelector, fieldSelector } = this.#options;
    const timeoutSeconds = Math.round(
      minWatchSeconds + Math.random() * (maxWatchSeconds - minWatchSeconds),
    );
    const { signal } = this.#stop;
    const selection = { labelSelector, fieldSelector };
    return client.watch(type, { resourceVersion, timeoutSeconds, ...selection, signal });
  }

  #handleEvent(event: WatchEvent<T>): void {
    this.#receivedAt = performance.now();
    if (event.type === "BOOKMARK") return;
    this.#changes++;
    const { object } = event;
    if (event.type === "DELETED") this.#objects.delete(objectKey(object.metadata), object);
    else this.#objects.put(object);
  }
}

/** Whether the next watch may start where this one ended; after other errors a list comes first. */
function canResumeWatch(error: unknown): boolean {
  return error instanceof KubernetesError && [undefined, 429, 503].includes(error.status);
}

interface ObjectHandlers<T extends KubernetesObject> {
  /**
   * Reduces an object before it is cached; its name and namespace stay. `managedFields` are removed
   * before.
   */
  readonly transform?: ((object: Stored<T>) => Stored<T>) | undefined;
  readonly indexers?: Readonly<Record<string, Indexer<T>>> | undefined;
  readonly onAdded?: (object: Stored<T>) => void;
  /** Called when the cached part of an object has changed apart from its version. */
  readonly onUpdated?: (object: Stored<T>, before: Stored<T>) => void;
  /** Called with the last known state of the object. */
  readonly onDeleted?: (object: Stored<T>) => void;
  /** Called with what the other handlers throw. */
  readonly onError: (error: unknown) => void;
}

/** A cache that calls handlers with its changes. */
class ObservedObjects<T extends KubernetesObject> {
  readonly cache: ObjectCache<T>;
  readonly #handlers: ObjectHandlers<T>;

  constructor(handlers: ObjectHandlers<T>) {
    this.cache = new ObjectCache(handlers.indexers ?? {});
    this.#handlers = handlers;
  }

  put(received: Stored<T>): void {
    const { uid, resourceVersion } = received.metadata;
    const key = objectKey(received.metadata);
    const before = this.cache.get(key);
    if (before?.metadata.resourceVersion === resourceVersion) return;
    const known = before?.metadata.uid === uid ? before : undefined;
    if (known === undefined) this.delete(key);
    this.#callHandler(() => this.#replace(known, this.#transform(received)));
  }

  delete(key: string, last?: Stored<T>): void {
    const object = this.cache.delete(key);
    if (object === undefined) return;
    this.#callHandler(() =>
      this.#handlers.onDeleted?.(last === undefined ? object : this.#transform(last)),
    );
  }

  #replace(known: Stored<T> | undefined, object: Stored<T>): void {
    const { resourceVersion } = object.metadata;
    const renewed = known && { ...known, metadata: { ...known.metadata, resourceVersion } };
    if (renewed !== undefined && isDeepStrictEqual(renewed, object)) {
      this.cache.put(renewed, known);
      return;
    }
    this.cache.put(object, known);
    if (known === undefined) this.#handlers.onAdded?.(object);
    else this.#handlers.onUpdated?.(object, known);
  }

  #transform(received: Stored<T>): Stored<T> {
    const object = withoutManagedFields(received);
    return this.#handlers.transform?.(object) ?? object;
  }

  /** An error of a handler does not end the watch. */
  #callHandler(handle: () => void): void {
    try {
      handle();
    } catch (error) {
      this.#handlers.onError(error);
    }
  }
}

function withoutManagedFields<T extends KubernetesObject>(object: Stored<T>): Stored<T> {
  const { managedFields, ...metadata } = object.metadata;
  return managedFields === undefined ? object : { ...object, metadata };
}
