import { isConflict } from "../kubernetes/kubernetes-error.ts";
import type { Log } from "../log/json-log.ts";
import type { Clock } from "./clock.ts";
import type { Controller, Lane, ReconcileRun, Requeue } from "./controller.ts";
import { NotLeaderError } from "./leadership.ts";
import { type QueueObserver, type QueueStats, WorkQueue } from "./work-queue.ts";
import { WriteExpectations } from "./write-expectations.ts";

type ReconcileResult = "done" | "requeued" | "retried" | "conflict" | "error";

export interface ControllerObserver {
  readonly queue: QueueObserver;
  /** Called once, with a function that reads the queue's statistics. */
  trackQueue(stats: () => QueueStats): void;
  reconciled(result: ReconcileResult, seconds: number): void;
}

interface ControllerDependencies {
  readonly clock: Clock;
  readonly log: Log;
  readonly observer?: ControllerObserver;
}

export interface RunningController {
  /** Stops to take keys, and resolves when all running reconciliations have ended. */
  stop(): Promise<void>;
}

/** Every key is reconciled so often, in case an event was missed. */
const resyncMs = 600_000;

/**
 * Reconciles every current key, and from then on those of changed objects. The caches of the
 * sources have to be synced.
 */
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
    this.#queue = new WorkQueue({ clock, observer: observer?.queue });
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
      return this.#requeue(key, await this.#controller.reconcile(key, run));
    } catch (error) {
      this.#queue.retry(key);
      if (isConflict(error)) return "conflict";
      if (error instanceof NotLeaderError) return "error";
      const { name } = this.#controller;
      this.#dependencies.log("error", "Cannot reconcile", { controller: name, key, error });
      return "error";
    }
  }

  #requeue(key: string, requeue: Requeue | void): ReconcileResult {
    if (requeue !== undefined && !(requeue.requeueAfterMs > 0)) {
      this.#queue.retry(key);
      return "retried";
    }
    this.#queue.forget(key);
    if (requeue === undefined) return "done";
    this.#queue.addAfter(key, requeue.requeueAfterMs);
    return "requeued";
  }

  #addAll(lane: Lane): void {
    for (const source of this.#controller.sources) {
      for (const key of source.keys()) this.#queue.add(key, lane);
    }
  }

  #scheduleResync(): void {
    const ms = resyncMs * (1 + Math.random() / 5);
    this.#cancelResync = this.#dependencies.clock.schedule(ms, () => {
      this.#addAll("resync");
      this.#scheduleResync();
    });
  }
}
