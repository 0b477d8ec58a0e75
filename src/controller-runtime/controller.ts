import type { WatchedResource } from "./watch-resource.ts";
import type { KubernetesObject, Stored } from "../kubernetes/resources.ts";

/** Brings the cluster to the desired state, key by key. */
export interface Controller {
  /** In logs and metrics. */
  readonly name: string;
  /** Number of keys that are reconciled at the same time. */
  readonly workers: number;
  readonly sources: readonly Source[];
  /**
   * Observes all objects of a key and does what is missing. The object of the key may be deleted.
   * Errors are logged and retried with back-off; conflicts are retried without a log entry.
   */
  reconcile(key: string, run: ReconcileRun): Promise<Requeue | void>;
}

export interface Requeue {
  /** Reconciles the key again after so long, if not before. 0 or less is retried with back-off. */
  readonly requeueAfterMs: number;
}

export interface ReconcileRun {
  /**
   * To be called with the result of each write. The key is not reconciled again before the cache
   * has the object, so that no decision is made without it.
   */
  expectWrite<T extends KubernetesObject>(watched: WatchedResource<T>, object: Stored<T>): void;
}

/** A source of keys. */
export interface Source {
  /** Whether keys outside the urgent lane are delayed a moment and added in groups. */
  readonly isGrouped?: boolean;
  /** Keys of all current objects. */
  keys(): Iterable<string>;
  /** Calls the listener with the keys of changed objects until the returned function is called. */
  subscribe(listener: (key: string, lane: Lane) => void): () => void;
}

interface KeyMapping<T extends KubernetesObject> {
  readonly mapToKeys: (object: Stored<T>) => readonly string[];
  readonly selectLane?: (object: Stored<T>) => Lane;
  readonly isGrouped?: boolean;
}

export function createSource<T extends KubernetesObject>(
  watched: WatchedResource<T>,
  mapping: KeyMapping<T>,
): Source {
  const { mapToKeys, selectLane = () => "normal", isGrouped = false } = mapping;
  return {
    isGrouped,
    *keys() {
      for (const object of watched.cache.values()) yield* mapToKeys(object);
    },
    subscribe: (listener) =>
      watched.onChange((object) => {
        for (const key of mapToKeys(object)) listener(key, selectLane(object));
      }),
  };
}

/** Lanes of a work queue: urgent keys come first, those of the periodic resync last. */
export const lanes = ["urgent", "normal", "resync"] as const;

export type Lane = (typeof lanes)[number];

export function moreUrgentLane(lane: Lane, other: Lane | undefined): Lane {
  return other !== undefined && lanes.indexOf(other) < lanes.indexOf(lane) ? other : lane;
}
