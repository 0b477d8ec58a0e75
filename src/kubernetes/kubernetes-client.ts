import type { KubernetesObject, ResourceType, Stored } from "./resources.ts";
import type { CallOptions } from "./transport.ts";

export interface Selection {
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

export interface ListOptions extends Selection, CallOptions {
  /** Objects on a page. */
  readonly limit?: number;
}

export interface ListPage<T extends KubernetesObject> {
  readonly items: readonly Stored<T>[];
  /** Of the whole list: where a watch goes on. */
  readonly resourceVersion: string;
}

export type WatchEvent<T extends KubernetesObject> =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: Stored<T> }
  | {
      readonly type: "BOOKMARK";
      readonly object: { readonly metadata: { readonly resourceVersion: string } };
    };

export interface WatchOptions extends Selection {
  readonly resourceVersion: string;
  /** The server ends the watch then. */
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal;
}

export interface WriteOptions extends CallOptions {
  readonly subresource?: "status";
}

export interface PatchOptions extends WriteOptions {
  /** Precondition: an object with another one is a conflict. */
  readonly resourceVersion?: string;
}

export interface ApplyOptions extends WriteOptions {
  readonly fieldManager: string;
  /** Takes fields over that other managers own; without it that is a conflict. */
  readonly force?: boolean;
}

export interface DeleteOptions extends CallOptions {
  /** Needed, because the default of Jobs leaves their pods behind. */
  readonly propagationPolicy: "Foreground" | "Background" | "Orphan";
  /** Precondition: an object of that name with another one is a conflict. */
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly gracePeriodSeconds?: number;
}

export interface LogOptions {
  readonly container: string;
  readonly follow?: boolean;
  /** Of the container's run before its last restart. */
  readonly previous?: boolean;
  /** RFC 3339. The API server keeps whole seconds only. */
  readonly sinceTime?: string | undefined;
  readonly signal?: AbortSignal;
}

/** A JSON merge patch: what is absent stays, null deletes, arrays are replaced whole. */
export type MergePatch<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { readonly [Key in keyof T]?: MergePatch<T[Key]> | null }
    : T;

/**
 * An API server, seen from one namespace. Objects are plain JSON. Every method throws `KubernetesError`, and what its
 * signal was aborted with. Calls are repeated while that may help: after 429 always, after 5xx and lost answers where a
 * second call does no harm. A `create` of a named object is such a call: when the first one did arrive, the caller is
 * told `AlreadyExists`.
 */
export interface KubernetesClient {
  readonly namespace: string;
  get<T extends KubernetesObject>(
    type: ResourceType<T>,
    name: string,
    options?: CallOptions,
  ): Promise<Stored<T>>;
  /** Pages of one state of the world. Throws `isExpired` when reading took so long that the server has dropped it. */
  list<T extends KubernetesObject>(
    type: ResourceType<T>,
    options?: ListOptions,
  ): AsyncGenerator<ListPage<T>, void, undefined>;
  create<T extends KubernetesObject>(
    type: ResourceType<T>,
    object: T,
    options?: CallOptions,
  ): Promise<Stored<T>>;
  /** Conflicts when the object has changed since it was read. */
  replace<T extends KubernetesObject>(
    type: ResourceType<T>,
    object: Stored<T>,
    options?: WriteOptions,
  ): Promise<Stored<T>>;
  patch<T extends KubernetesObject>(
    type: ResourceType<T>,
    name: string,
    patch: MergePatch<T>,
    options?: PatchOptions,
  ): Promise<Stored<T>>;
  /** Server-side apply: the object's fields, owned by the field manager, and none else. */
  apply<T extends KubernetesObject>(
    type: ResourceType<T>,
    object: T & { metadata: { name: string } },
    options: ApplyOptions,
  ): Promise<Stored<T>>;
  delete<T extends KubernetesObject>(
    type: ResourceType<T>,
    name: string,
    options: DeleteOptions,
  ): Promise<void>;
  /** A question in the form of an object that is answered, not stored. */
  review<T extends KubernetesObject>(
    type: ResourceType<T>,
    object: T,
    options?: CallOptions,
  ): Promise<T>;
  /** Ends when the server ends it; an event of an error is thrown. `createReflector()` makes a cache of it. */
  watch<T extends KubernetesObject>(
    type: ResourceType<T>,
    options: WatchOptions,
  ): AsyncGenerator<WatchEvent<T>, void, undefined>;
  /** Bytes of a container's log, each line with its time in front. Fails after minutes of silence; see `followPodLog()`. */
  openLog(pod: string, options: LogOptions): AsyncIterable<Uint8Array>;
  /** Ends all calls and connections. */
  close(): Promise<void>;
}
