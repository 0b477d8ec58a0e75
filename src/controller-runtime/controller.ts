import { isConflict } from "../kubernetes/kubernetes-error.ts";
import type { KubernetesObject, Stored } from "../kubernetes/resources.ts";
import type { Clock } from "./clock.ts";
import type { Log } from "../log/json-log.ts";
import { NotLeaderError } from "./leadership.ts";
import type { WatchedResource } from "./watch-resource.ts";
import { type Lane, type QueueObserver, type QueueStats, WorkQueue } from "./work-queue.ts";
import { WriteExpectations } from "./write-expectations.ts";

/** Brings the world of each key to where it should be. */
export interface Controller {
  /** In logs and metrics. */
  readonly name: string;
  /** Keys that are reconciled at the same time. */
  readonly workers: number;
  readonly sources: readonly Source[];
  /**
   * Looks at all that belongs to the key and does what is missing. Called with the name of an object that may be gone.
   * An error is logged and retried after a while. A conflict is retried only.
   */
  reconcile(key: string, run: ReconcileRun): Promise<Requeue | void>;
}

export interface Requeue {
  /** Reconciles the key again then, if nothing else does before. What is not above zero is retried like an error. */
  readonly requeueAfterMs: number;
}

export interface ReconcileRun {
  /**
   * Notes what a write of our own returned. The key is not reconciled again before the cache has it, so that no decision is
   * made on a world without it.
   */
  expectWrite<T extends KubernetesObject>(watched: WatchedResource<T>, object: Stored<T>): void;
}

/** Where keys come from. */
export interface Source {
  /** Whether its keys, but for urgent ones, wait a moment and come in groups. */
  readonly isGrouped?: boolean;
  /** Of all objects that are there now. */
  keys(): Iterable<string>;
  /** Keys whose world changed from now on, until the returned function is called. */
  subscribe(listener: (key: string, lane: Lane) => void): () => void;
}

export interface KeyMapping<T extends KubernetesObject> {
  readonly mapToKeys: (object: Stored<T>) => readonly string[];
  readonly selectLane?: (object: Stored<T>) => Lane;
  readonly isGrouped?: boolean;
}

export function createSource<T extends KubernetesObject>(
  watched: WatchedResource<T>,
  route: KeyMapping<T>,
): Source {
  const { mapToKeys, selectLane = () => "normal", isGrouped = false } = route;
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

export type ReconcileResult = "done" | "requeued" | "retried" | "conflict" | "error";

export interface ControllerObserver {
  readonly queue: QueueObserver;
  /** Called once, with the way to read the queue's figures. */
  trackQueue(stats: () => QueueStats): void;
  reconciled(result: ReconcileResult, seconds: number): void;
}

export interface ControllerDependencies {
  readonly clock: Clock;
  readonly log: Log;
  readonly observer?: ControllerObserver;
}

export interface RunningController {
  /** Takes in nothing more, and resolves when nothing is reconciled any more. */
  stop(): Promise<void>;
}

/** Looks at every key so often, in case an event was missed. */
const resyncMs = 600_000;

/** Reconciles every key that there is, and from then on those whose world changes. The sources have synced. */
export function startController(
  controller: Controller,
  dependencies: ControllerDependencies,
): RunningController {
  return new QueueController(controller, dependencies);
}

class QueueController implements RunningController {
  readonly #controller: Controller;
  readonly #dependencies: ControllerDependencies;
  readonly #queue: WorkQueue;
  readonly #expectations: WriteExpectations;
  readonly #unsubscribe: (() => void)[];
  #cancelResync: () => void = () => {};

  constructor(controller: Controller, dependencies: ControllerDependencies) {
    const { clock, observer } = dependencies;
    this.#controller = controller;
    this.#dependencies = dependencies;
    this.#queue = new WorkQueue({
      clock,
      ...(observer !== undefined && { observer: observer.queue }),
    });
    observer?.trackQueue(() => this.#queue.stats());
    this.#expectations = new WriteExpectations(clock);
    this.#unsubscribe = controller.sources.map((source) =>
      source.subscribe((key, lane) =>
        source.isGrouped && lane !== "urgent"
          ? this.#queue.addToGroup(key, lane)
          : this.#queue.add(key, lane),
      ),
    );
    this.#addAll("normal");
    this.#scheduleResync();
    for (let i = 0; i < controller.workers; i++) void this.#runWorker();
  }

  async stop(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    this.#cancelResync();
    await this.#queue.close();
  }

  async #runWorker(): Promise<void> {
    for (let key = await this.#queue.take(); key !== undefined; key = await this.#queue.take()) {
      await this.#process(key);
      this.#queue.done(key);
    }
  }

  async #process(key: string): Promise<void> {
    const unseenForMs = this.#expectations.remainingMs(key);
    if (unseenForMs > 0) {
      this.#queue.addAfter(key, unseenForMs);
      return;
    }
    const { clock, observer } = this.#dependencies;
    const start = clock.now();
    const result = await this.#reconcile(key);
    observer?.reconciled(result, (clock.now() - start) / 1_000);
  }

  async #reconcile(key: string): Promise<ReconcileResult> {
    const run: ReconcileRun = {
      expectWrite: (watched, object) =>
        this.#expectations.expect(key, () => watched.hasSeen(object)),
    };
    try {
      const requeue = await this.#controller.reconcile(key, run);
      if (requeue === undefined) {
        this.#queue.forget(key);
        return "done";
      }
      if (requeue.requeueAfterMs > 0) {
        this.#queue.forget(key);
        this.#queue.addAfter(key, requeue.requeueAfterMs);
        return "requeued";
      }
      this.#queue.retry(key);
      return "retried";
    } catch (error) {
      this.#queue.retry(key);
      if (isConflict(error)) return "conflict";
      if (error instanceof NotLeaderError) return "error";
      this.#dependencies.log("error", "Cannot reconcile", {
        controller: this.#controller.name,
        key,
        error,
      });
      return "error";
    }
  }

  #addAll(lane: Lane): void {
    for (const source of this.#controller.sources) {
      for (const key of source.keys()) this.#queue.add(key, lane);
    }
  }

  #scheduleResync(): void {
    this.#cancelResync = this.#dependencies.clock.schedule(
      resyncMs * (1 + Math.random() / 5),
      () => {
        this.#addAll("resync");
        this.#scheduleResync();
      },
    );
  }
}
