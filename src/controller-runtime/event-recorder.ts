import { createHash } from "node:crypto";
import type { KubernetesClient } from "../kubernetes/kubernetes-client.ts";
import { isAlreadyExists } from "../kubernetes/kubernetes-error.ts";
import {
  type KubernetesObject,
  resources,
  type ResourceType,
  type Stored,
} from "../kubernetes/resources.ts";
import type { Clock } from "./clock.ts";
import { errorMessageWithCauses } from "../log/error-message.ts";
import type { Log } from "../log/json-log.ts";

/** What `kubectl describe` shows below an object. */
export interface ObjectEvent {
  readonly type: "Normal" | "Warning";
  /** One word, for instance `PodFailed`. */
  readonly reason: string;
  readonly message: string;
}

/** Writes Kubernetes events. An event that cannot be written is logged and lost. */
export interface EventRecorder {
  /** The same event of the same object again is counted instead. */
  record<T extends KubernetesObject>(
    type: ResourceType<T>,
    object: Stored<T>,
    event: ObjectEvent,
  ): void;
  /** Resolves when what was recorded is written, or after a few seconds. */
  close(): Promise<void>;
}

export interface EventRecorderOptions {
  readonly client: KubernetesClient;
  /** Whose events these are. */
  readonly component: string;
  readonly clock: Clock;
  readonly log: Log;
}

interface Allowance {
  readonly left: number;
  readonly at: number;
}

type NewEvent = ReturnType<typeof buildEvent>;

const maxMessageLength = 1_024;
/** Of one object in a row; then one every `allowanceMs`. */
const maxInARow = 25;
const allowanceMs = 300_000;
/** Objects whose allowance is remembered. */
const maxObjects = 4_096;
const maxUnsent = 1_000;
const callMs = 5_000;
const closeMs = 3_000;

export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  return new CountingRecorder(options);
}

class CountingRecorder implements EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #allowances = new Map<string, Allowance>();
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
    if (this.#unsent.length >= maxUnsent || !this.#allows(object.metadata.uid)) return;
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

  #allows(uid: string): boolean {
    const now = this.#options.clock.now();
    const before = this.#allowances.get(uid) ?? { left: maxInARow, at: now };
    const left = Math.min(maxInARow, before.left + (now - before.at) / allowanceMs);
    this.#allowances.delete(uid);
    this.#allowances.set(uid, { left: left < 1 ? left : left - 1, at: now });
    const [oldest] = this.#allowances.keys();
    if (oldest !== undefined && this.#allowances.size > maxObjects) this.#allowances.delete(oldest);
    return left >= 1;
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
    const { client } = this.#options;
    const call = { deadlineMs: callMs };
    try {
      await client.create(resources.events, event, call);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      const { count = 1, metadata } = await client.get(resources.events, event.metadata.name, call);
      const { resourceVersion } = metadata;
      const { lastTimestamp } = event;
      const more = { count: count + 1, lastTimestamp };
      await client.patch(resources.events, metadata.name, more, { ...call, resourceVersion });
    }
  }
}

interface Occurrence<T extends KubernetesObject> {
  readonly type: ResourceType<T>;
  readonly object: Stored<T>;
  readonly event: ObjectEvent;
  readonly component: string;
  readonly at: Date;
}

/** The same occurrence has the same name, so that every process of the component counts on. */
function buildEvent<T extends KubernetesObject>({
  type,
  object,
  event,
  component,
  at,
}: Occurrence<T>) {
  const { name, uid, namespace = "" } = object.metadata;
  const message = event.message.slice(0, maxMessageLength);
  const identity = JSON.stringify([component, uid, event.type, event.reason, message]);
  const digest = createHash("sha256").update(identity).digest("hex").slice(0, 16);
  const { apiVersion, kind } = type;
  return {
    metadata: { name: `${name.slice(0, 200).replace(/[^a-z0-9]+$/, "")}.${digest}`, namespace },
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
