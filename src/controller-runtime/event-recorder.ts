import { TokenBuckets } from "../limits/token-buckets.ts";
import { createHash } from "node:crypto";
import type { Clock } from "./clock.ts";
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
  readonly #allowances = new TokenBuckets({
    capacity: maxInARow,
    refillMs: allowanceMs,
    maxKeys: maxObjects,
  });
  readonly #unsent: NewEvent[] = [];
  #sending: Promise<void> | undefined;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  record<T extends KubernetesObject>(
    type: ResourceType<T>,
    object: Stored<T>,
    event: ObjectEvent,
  ): void {
    const { component, clock } = this.#options;
    if (this.#unsent.length >= maxUnsent) return;
    if (!this.#allowances.take(object.metadata.uid, clock.now())) return;
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

/** An event of an object, shown by `kubectl describe`. */
export interface ObjectEvent {
  readonly type: "Normal" | "Warning";
  /** In UpperCamelCase, for instance `PodFailed`. */
  readonly reason: string;
  readonly message: string;
}

interface Occurrence<T extends KubernetesObject> {
  readonly type: ResourceType<T>;
  readonly object: Stored<T>;
  readonly event: ObjectEvent;
  readonly component: string;
  readonly at: Date;
}

/** Limit of the API server. */
const maxMessageLength = 1_024;

/**
 * The Event object of an occurrence. Its name follows from the object, the reason and the message,
 * so that every process of the component counts the same event.
 */
function buildEvent<T extends KubernetesObject>(occurrence: Occurrence<T>) {
  const { type, object, event, component, at } = occurrence;
  const { name, uid, namespace = "" } = object.metadata;
  const { apiVersion, kind } = type;
  const message = event.message.slice(0, maxMessageLength);
  const identity = JSON.stringify([component, uid, event.type, event.reason, message]);
  return {
    metadata: { name: `${eventNamePrefix(name)}.${shortDigest(identity)}`, namespace },
    involvedObject: { apiVersion, kind, name, namespace, uid },
    ...event,
    message,
    source: { component },
    reportingComponent: component,
    reportingInstance: "",
    firstTimestamp: at.toISOString(),
    lastTimestamp: at.toISOString(),
    count: 1,
  };
}

function eventNamePrefix(name: string): string {
  return name.slice(0, 200).replace(/[^a-z0-9]+$/, "");
}

function shortDigest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

/** Events of one object in a row; after them, one every `allowanceMs`. */
const maxInARow = 25;
const allowanceMs = 300_000;
/** Objects whose allowance is known. */
const maxObjects = 4_096;
