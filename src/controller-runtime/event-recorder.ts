import type { KubernetesClient } from "../kubernetes/kubernetes-client.ts";
import { isAlreadyExists } from "../kubernetes/kubernetes-error.ts";
import {
  type KubernetesObject,
  resources,
  type ResourceType,
  type Stored,
} from "../kubernetes/resources.ts";
import { errorMessageWithCauses } from "../log/error-message.ts";
import type { Log } from "../log/json-log.ts";
import { buildEvent, type ObjectEvent } from "./build-event.ts";
import type { Clock } from "./clock.ts";
import { EventAllowances } from "./event-allowances.ts";

/** Writes Kubernetes events. An event that cannot be written is logged and lost. */
export interface EventRecorder {
  /** Records an event of an object; the same event again only raises its count. */
  record<T extends KubernetesObject>(
    type: ResourceType<T>,
    object: Stored<T>,
    event: ObjectEvent,
  ): void;
  /** Resolves when all recorded events are written, or after a few seconds. */
  close(): Promise<void>;
}

interface EventRecorderOptions {
  readonly client: KubernetesClient;
  /** The component that reports the events. */
  readonly component: string;
  readonly clock: Clock;
  readonly log: Log;
}

type NewEvent = ReturnType<typeof buildEvent>;

const maxUnsent = 1_000;
/** A third of it is more than a write takes on a slow disk. */
const callMs = 10_000;
const closeMs = 3_000;

export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  return new CountingRecorder(options);
}

class CountingRecorder implements EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #allowances: EventAllowances;
  readonly #unsent: NewEvent[] = [];
  #sending: Promise<void> | undefined;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#allowances = new EventAllowances(options.clock);
  }

  record<T extends KubernetesObject>(
    type: ResourceType<T>,
    object: Stored<T>,
    event: ObjectEvent,
  ): void {
    if (this.#unsent.length >= maxUnsent || !this.#allowances.take(object.metadata.uid)) return;
    const { component, clock } = this.#options;
    this.#unsent.push(buildEvent({ type, object, event, component, at: clock.date() }));
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
  }

  async close(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#options.clock.schedule(closeMs, resolve);
    await Promise.race([this.#sending, promise]);
    cancel();
    this.#unsent.length = 0;
  }

  async #sendAll(): Promise<void> {
    for (let event = this.#unsent.shift(); event !== undefined; event = this.#unsent.shift()) {
      await this.#send(event).catch((error: unknown) => {
        this.#options.log("warn", "Cannot write an event", {
          error: errorMessageWithCauses(error),
        });
      });
    }
  }

  async #send(event: NewEvent): Promise<void> {
    const client = this.#options.client.inNamespace(event.metadata.namespace || undefined);
    const call = { deadlineMs: callMs };
    try {
      await client.create(resources.events, event, call);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      const { count = 1, metadata } = await client.get(resources.events, event.metadata.name, call);
      const { name, resourceVersion } = metadata;
      const update = { count: count + 1, lastTimestamp: event.lastTimestamp };
      await client.patch(resources.events, name, update, { ...call, resourceVersion });
    }
  }
}
