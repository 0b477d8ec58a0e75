import { createReflector, type Reflector, type ReflectorOptions } from "../kubernetes/reflector.ts";
import { objectKey } from "../kubernetes/object-key.ts";
import type { KubernetesObject, ResourceType, Stored } from "../kubernetes/resources.ts";
import type { Log } from "../log/json-log.ts";
import { WatchProblem } from "./watch-problem.ts";

export type WatchResourceOptions<T extends KubernetesObject> = Pick<
  ReflectorOptions<T>,
  "client" | "type" | "labelSelector" | "fieldSelector" | "transform" | "indexers"
> & { readonly log: Log };

/** A cache of one resource with listeners. */
export interface WatchedResource<T extends KubernetesObject> extends ResourceWatch {
  readonly type: ResourceType<T>;
  readonly cache: Reflector<T>;
  /**
   * Calls the listener with objects that are added, deleted or changed in the cached fields, until
   * the returned function is called.
   */
  onChange(listener: (object: Stored<T>) => void): () => void;
  /** Whether the cache is at least as new as this object, the result of a write. */
  hasSeen(object: Stored<T>): boolean;
}

/** State of a watch of any resource. */
export interface ResourceWatch {
  /** For instance `compressionjobs`. */
  readonly resource: string;
  readonly synced: Promise<void>;
  readonly size: number;
  readonly secondsSinceReceived: number;
  /** Why the API server cannot be listed or watched at the moment, with advice. */
  readonly problem: string | undefined;
  /** Whether the watch neither receives anything nor retries. */
  readonly isHung: boolean;
  stop(): Promise<void>;
}

/** Deletions that `hasSeen` knows, for concurrent writes of the same objects. */
const maxDeleted = 1_000;
/** A watch receives a bookmark about once a minute, and is opened again every five minutes. */
const hungSeconds = 600;

/** Starts to list and watch a resource. Errors are logged with advice and retried. */
export function watchResource<T extends KubernetesObject>(
  options: WatchResourceOptions<T>,
): WatchedResource<T> {
  return new ListeningWatch(options);
}

class ListeningWatch<T extends KubernetesObject> implements WatchedResource<T> {
  readonly type: ResourceType<T>;
  readonly cache: Reflector<T>;
  readonly #problem: WatchProblem;
  readonly #listeners = new Set<(object: Stored<T>) => void>();
  readonly #deletedUids = new Set<string>();

  constructor({ log, ...options }: WatchResourceOptions<T>) {
    const notify = (object: Stored<T>) => this.#notifyListeners(object);
    this.type = options.type;
    this.#problem = new WatchProblem({ ...options, log });
    this.cache = createReflector({
      ...options,
      onAdded: notify,
      onUpdated: notify,
      onDeleted: (object) => this.#handleDeletion(object),
      onError: (error) => this.#problem.report(error),
    });
  }

  get resource(): string {
    return this.type.plural;
  }

  get synced(): Promise<void> {
    return this.cache.synced;
  }

  get size(): number {
    return this.cache.size;
  }

  get secondsSinceReceived(): number {
    return this.cache.secondsSinceReceived;
  }

  get problem(): string | undefined {
    const { secondsSince, message } = this.#problem;
    return secondsSince < this.secondsSinceReceived ? message : undefined;
  }

  get isHung(): boolean {
    return Math.min(this.#problem.secondsSince, this.secondsSinceReceived) > hungSeconds;
  }

  onChange(listener: (object: Stored<T>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  hasSeen({ metadata }: Stored<T>): boolean {
    const cached = this.cache.get(objectKey(metadata));
    if (cached === undefined) return this.#deletedUids.has(metadata.uid);
    return BigInt(cached.metadata.resourceVersion) >= BigInt(metadata.resourceVersion);
  }

  stop(): Promise<void> {
    return this.cache.stop();
  }

  #notifyListeners(object: Stored<T>): void {
    for (const listener of this.#listeners) listener(object);
  }

  #handleDeletion(object: Stored<T>): void {
    this.#deletedUids.add(object.metadata.uid);
    const [oldest] = this.#deletedUids;
    if (oldest !== undefined && this.#deletedUids.size > maxDeleted) {
      this.#deletedUids.delete(oldest);
    }
    this.#notifyListeners(object);
  }
}
