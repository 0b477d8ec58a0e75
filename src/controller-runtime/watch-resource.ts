import type { KubernetesClient } from "../kubernetes/kubernetes-client.ts";
import { KubernetesError } from "../kubernetes/kubernetes-error.ts";
import { createReflector, type Reflector, type ReflectorOptions } from "../kubernetes/reflector.ts";
import type { KubernetesObject, ResourceType, Stored } from "../kubernetes/resources.ts";
import { errorMessageWithCauses } from "../log/error-message.ts";
import type { Log } from "../log/json-log.ts";

type WatchResourceOptions<T extends KubernetesObject> = Pick<
  ReflectorOptions<T>,
  "client" | "type" | "labelSelector" | "fieldSelector" | "transform" | "indexers"
> & { readonly log: Log };

/** A cache of one resource that controllers read and are woken by. */
export interface WatchedResource<T extends KubernetesObject> extends ResourceWatch {
  readonly type: ResourceType<T>;
  readonly cache: Reflector<T>;
  /** Tells of objects that were added or deleted, or that changed in what the cache keeps, until the returned function is called. */
  onChange(listener: (object: Stored<T>) => void): () => void;
  /** Whether the cache is at least as new as this object, which a write returned. */
  hasSeen(object: Stored<T>): boolean;
}

/** What can be said of a watch whatever it watches. */
export interface ResourceWatch {
  /** For instance `compressionjobs`. */
  readonly resource: string;
  readonly synced: Promise<void>;
  readonly size: number;
  readonly secondsSinceReceived: number;
  /** Why the API server cannot be listed or watched at the moment, and what to do about it. */
  readonly problem: string | undefined;
  /** Whether the watch neither hears anything nor tries again. */
  readonly isHung: boolean;
  stop(): Promise<void>;
}

/** Log entries of the same problem are so far apart. */
const repeatLogMs = 60_000;
/** Deletions that are remembered: those of objects that are written to at about the same time. */
const maxDeleted = 1_000;
/** A watch is told something about once a minute, and is opened again every five. */
const hungSeconds = 600;

/** Lists and watches a resource from now on. What cannot be read is logged with what to do, and tried again for ever. */
export function watchResource<T extends KubernetesObject>(
  options: WatchResourceOptions<T>,
): WatchedResource<T> {
  const { client, type, log, ...selection } = options;
  const listeners = new Set<(object: Stored<T>) => void>();
  const deletedUids = new Set<string>();
  let lastProblem:
    | { readonly message: string; readonly at: number; readonly loggedAt: number }
    | undefined;

  const notifyListeners = (object: Stored<T>) => {
    for (const listener of listeners) listener(object);
  };
  const onDeleted = (object: Stored<T>) => {
    deletedUids.add(object.metadata.uid);
    const [oldest] = deletedUids;
    if (oldest !== undefined && deletedUids.size > maxDeleted) deletedUids.delete(oldest);
    notifyListeners(object);
  };
  const onError = (error: unknown) => {
    const at = performance.now();
    const message = `${errorMessageWithCauses(error)}${errorAdvice(error, type, client)}`;
    const isNew = lastProblem?.message !== message || at - lastProblem.loggedAt > repeatLogMs;
    if (isNew) log("error", message);
    lastProblem = { message, at, loggedAt: isNew ? at : (lastProblem?.loggedAt ?? at) };
  };
  const cache = createReflector({
    client,
    type,
    ...selection,
    onAdded: notifyListeners,
    onUpdated: notifyListeners,
    onDeleted,
    onError,
  });
  const secondsSinceProblem = () =>
    lastProblem === undefined ? Infinity : (performance.now() - lastProblem.at) / 1_000;

  return {
    type,
    cache,
    resource: type.plural,
    synced: cache.synced,
    get size() {
      return cache.size;
    },
    get secondsSinceReceived() {
      return cache.secondsSinceReceived;
    },
    get problem() {
      return secondsSinceProblem() < cache.secondsSinceReceived ? lastProblem?.message : undefined;
    },
    get isHung() {
      return Math.min(secondsSinceProblem(), cache.secondsSinceReceived) > hungSeconds;
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    hasSeen({ metadata }) {
      const cached = cache.get(metadata.name);
      if (cached === undefined) return deletedUids.has(metadata.uid);
      return BigInt(cached.metadata.resourceVersion) >= BigInt(metadata.resourceVersion);
    },
    stop: () => cache.stop(),
  };
}

function errorAdvice(
  error: unknown,
  type: ResourceType<KubernetesObject>,
  { namespace }: KubernetesClient,
): string {
  const status = error instanceof KubernetesError ? error.status : undefined;
  const { kind, plural, apiVersion } = type;
  const [group = ""] = apiVersion.includes("/") ? apiVersion.split("/") : [];
  if (status === 404)
    return `. The kind ${kind} is not installed: apply the CustomResourceDefinition ${plural}.${group}`;
  if (status === 401)
    return ". The credentials are not accepted: check the service account's token";
  if (status !== 403) return "";
  const rule = `apiGroups ["${group}"], resources ["${plural}"], verbs ["list", "watch"]`;
  return `. Grant the service account a Role in namespace "${namespace}" with ${rule}`;
}
