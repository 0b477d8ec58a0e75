import { isDeepStrictEqual } from "node:util";
import { objectKey } from "./object-key.ts";
import { type Indexer, ObjectCache } from "./object-cache.ts";
import type { KubernetesObject, Stored } from "./resources.ts";

export interface ObjectHandlers<T extends KubernetesObject> {
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
export class ObservedObjects<T extends KubernetesObject> {
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
