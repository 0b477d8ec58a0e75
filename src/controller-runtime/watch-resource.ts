import type { KubernetesClient } from "../kubernetes/kubernetes-client.ts";
import { KubernetesError } from "../kubernetes/kubernetes-error.ts";
import { allNamespaces, objectKey } from "../kubernetes/object-key.ts";
import { createReflector, type Reflector, type ReflectorOptions } from "../kubernetes/reflector.ts";
import type { KubernetesObject, ResourceType, Stored } from "../kubernetes/resources.ts";
import { setBounded } from "../limits/bounded-map.ts";
import { errorMessageWithCauses } from "../log/error-message.ts";
import type { Log } from "../log/json-log.ts";

type WatchResourceOptions<T extends KubernetesObject> = Pick<
  ReflectorOptions<T>,
  | "client"
  | "type"
  | "labelSelector"
  | "fieldSelector"
  | "transform"
  | "indexers"
  | "forbiddenLimitMs"
> & { readonly log: Log };

/** What is read of a cache. */
export type ObjectReader<T extends KubernetesObject> = Pick<
  Reflector<T>,
  "get" | "values" | "byIndex"
>;

/** A cache of one resource with listeners. */
export interface WatchedResource<T extends KubernetesObject> extends ResourceWatch {
  readonly type: ResourceType<T>;
  readonly cache: ObjectReader<T>;
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
  readonly #deletedUids = new Map<string, true>();

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
    setBounded(this.#deletedUids, object.metadata.uid, true, maxDeleted);
    this.#notifyListeners(object);
  }
}

interface WatchProblemOptions {
  readonly client: KubernetesClient;
  readonly type: ResourceType<KubernetesObject>;
  readonly log: Log;
}

/** Interval of log entries of the same problem. */
const repeatLogMs = 60_000;

/** The last error of a list or watch, logged with advice when it is new. */
class WatchProblem {
  readonly #options: WatchProblemOptions;
  #message: string | undefined;
  #at = -Infinity;
  #loggedAt = -Infinity;

  constructor(options: WatchProblemOptions) {
    this.#options = options;
  }

  get message(): string | undefined {
    return this.#message;
  }

  get secondsSince(): number {
    return (performance.now() - this.#at) / 1_000;
  }

  report(error: unknown): void {
    const { client, type, log } = this.#options;
    const message = `${errorMessageWithCauses(error)}${errorAdvice(error, type, client)}`;
    this.#at = performance.now();
    if (message !== this.#message || this.#at - this.#loggedAt > repeatLogMs) {
      log("error", message);
      this.#loggedAt = this.#at;
    }
    this.#message = message;
  }
}

function errorAdvice(
  error: unknown,
  { kind, plural, apiVersion }: ResourceType<KubernetesObject>,
  { namespace }: KubernetesClient,
): string {
  const [group = ""] = apiVersion.includes("/") ? apiVersion.split("/") : [];
  const status = error instanceof KubernetesError ? error.status : undefined;
  if (status === 401) {
    return ". The credentials are not accepted: check the service account's token";
  }
  if (status === 403) {
    const rule = `apiGroups ["${group}"], resources ["${plural}"], verbs ["list", "watch"]`;
    const role = namespace === allNamespaces ? "ClusterRole" : `Role in namespace "${namespace}"`;
    return `. Grant the service account a ${role} with ${rule}`;
  }
  if (status === 404) {
    const definition = `CustomResourceDefinition ${plural}.${group}`;
    return `. The kind ${kind} is not installed: apply the ${definition}`;
  }
  return "";
}

/** After this, a namespace that may not be read no longer holds up the others. */
const forbiddenLimitMs = 30_000;

/** Watches a resource by each of the clients, into what looks like one cache. */
export function watchNamespaces<T extends KubernetesObject>(
  clients: readonly KubernetesClient[],
  options: Omit<WatchResourceOptions<T>, "client" | "forbiddenLimitMs">,
): WatchedResource<T> {
  const limits = clients.length > 1 ? { forbiddenLimitMs } : {};
  const watches = clients.map((client) => watchResource({ ...options, ...limits, client }));
  const [only, ...others] = watches;
  if (only === undefined) throw new TypeError("There is no namespace to watch");
  return others.length === 0 ? only : new MergedWatch(options.type, watches);
}

class MergedWatch<T extends KubernetesObject> implements WatchedResource<T> {
  readonly type: ResourceType<T>;
  readonly cache: ObjectReader<T>;
  readonly synced: Promise<void>;
  readonly #watches: readonly WatchedResource<T>[];

  constructor(type: ResourceType<T>, watches: readonly WatchedResource<T>[]) {
    this.type = type;
    this.#watches = watches;
    this.cache = new MergedCache(watches.map(({ cache }) => cache));
    this.synced = Promise.all(watches.map(({ synced }) => synced)).then(() => {});
    // Without a caller that waits, the rejection would be unhandled.
    this.synced.catch(() => {});
  }

  get resource(): string {
    return this.type.plural;
  }

  get size(): number {
    return this.#watches.reduce((sum, { size }) => sum + size, 0);
  }

  /** Of the one that was silent for the longest time. */
  get secondsSinceReceived(): number {
    return Math.max(...this.#watches.map(({ secondsSinceReceived }) => secondsSinceReceived));
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

  async stop(): Promise<void> {
    await Promise.all(this.#watches.map((watch) => watch.stop()));
  }
}

class MergedCache<T extends KubernetesObject> implements ObjectReader<T> {
  readonly #caches: readonly ObjectReader<T>[];

  constructor(caches: readonly ObjectReader<T>[]) {
    this.#caches = caches;
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
}
