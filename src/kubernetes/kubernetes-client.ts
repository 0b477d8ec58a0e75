import type { KubernetesObject, ResourceType, Stored } from "./resources.ts";
import type { CallOptions } from "./transport.ts";

interface Selection {
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

export interface ListOptions extends Selection, CallOptions {
  /** Objects on a page. */
  readonly limit?: number;
}

export interface ListPage<T extends KubernetesObject> {
  readonly items: readonly Stored<T>[];
  /** Version of the whole list, from which a watch can start. */
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
  /** The server ends the watch after so long. */
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal;
}

export interface CreateOptions extends CallOptions {
  /** The object is checked, unknown fields too, and not kept. */
  readonly dryRun?: boolean;
}

export interface WriteOptions extends CallOptions {
  readonly subresource?: "status" | "scale";
}

export interface PatchOptions extends WriteOptions {
  /** Precondition: an object with another version is a conflict. */
  readonly resourceVersion?: string;
}

export interface DeleteOptions extends CallOptions {
  /** Required, because the default of Jobs orphans their pods. */
  readonly propagationPolicy: "Foreground" | "Background" | "Orphan";
  /** Precondition: an object of that name with another uid is a conflict. */
  readonly uid?: string;
  readonly gracePeriodSeconds?: number;
}

export interface LogOptions {
  readonly container: string;
  /** RFC 3339. The API server reads whole seconds only. */
  readonly sinceTime?: string | undefined;
}

/** A JSON merge patch: absent fields stay, null deletes a field, arrays are replaced whole. */
export type MergePatch<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { readonly [Key in keyof T]?: MergePatch<T[Key]> | null }
    : T;

/**
 * A client of one namespace of an API server. Objects are plain JSON. Every method throws
 * `KubernetesError`, and the reason of its signal when that is aborted. Calls are retried after
 * 429, and after 5xx and lost responses when a second call does no harm. A `create` of a named
 * object is such a call: it fails with `AlreadyExists` when the first request succeeded without a
 * response.
 */
export interface KubernetesClient {
  readonly namespace: string;
  /** The same client for another namespace; itself without one. It closes with this one. */
  inNamespace(namespace: string | undefined): KubernetesClient;
  get<T extends KubernetesObject>(
    type: ResourceType<T>,
    name: string,
    options?: CallOptions,
  ): Promise<Stored<T>>;
  /**
   * Pages of one snapshot. Throws `isExpired` when the server has dropped the snapshot meanwhile.
   */
  list<T extends KubernetesObject>(
    type: ResourceType<T>,
    options?: ListOptions,
  ): AsyncGenerator<ListPage<T>, void, undefined>;
  create<T extends KubernetesObject>(
    type: ResourceType<T>,
    object: T,
    options?: CreateOptions,
  ): Promise<Stored<T>>;
  /** Fails with a conflict when the object has changed since it was read. */
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
  delete<T extends KubernetesObject>(
    type: ResourceType<T>,
    name: string,
    options: DeleteOptions,
  ): Promise<void>;
  /** Creates an object that the API server answers and does not store, such as a TokenReview. */
  review<T extends KubernetesObject>(
    type: ResourceType<T>,
    object: T,
    options?: CallOptions,
  ): Promise<T>;
  /** Ends when the server ends it. Throws on an event of type ERROR. */
  watch<T extends KubernetesObject>(
    type: ResourceType<T>,
    options: WatchOptions,
  ): AsyncGenerator<WatchEvent<T>, void, undefined>;
  /** Bytes of a container's log, each line with its timestamp. See `readPodLog()`. */
  openLog(pod: string, options: LogOptions): AsyncIterable<Uint8Array>;
  /** Ends all calls and connections. */
  close(): Promise<void>;
}
