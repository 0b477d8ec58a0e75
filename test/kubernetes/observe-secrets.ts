import { after } from "node:test";
import type { KubernetesClient } from "../../src/kubernetes/kubernetes-client.ts";
import {
  createReflector,
  type Reflector,
  type ReflectorOptions,
} from "../../src/kubernetes/reflector.ts";
import { type Secret, secrets } from "../support/cluster/test-resources.ts";
import { ChangeSignal } from "../support/until.ts";

export interface ObservedSecrets {
  readonly reflector: Reflector<Secret>;
  /** What handlers were called with, for instance `added a`, and names of errors. */
  readonly events: string[];
  readonly errors: unknown[];
  /** Resolves as soon as the event has been observed at least that often. */
  readonly untilEvent: (event: string, times?: number) => Promise<void>;
}

/** A reflector of secrets whose handlers write down what they are called with. It is stopped with the test that asks. */
export function observeSecrets(
  client: KubernetesClient,
  options: Partial<ReflectorOptions<Secret>> = {},
): ObservedSecrets {
  const events: string[] = [];
  const errors: unknown[] = [];
  const changed = new ChangeSignal();
  const recordEvent = (event: string) => {
    events.push(event);
    changed.notify();
  };
  const reflector = createReflector({
    client,
    type: secrets,
    onAdded: ({ metadata }) => recordEvent(`added ${metadata.name}`),
    onUpdated: ({ metadata }) => recordEvent(`updated ${metadata.name}`),
    onDeleted: ({ metadata }) => recordEvent(`deleted ${metadata.name}`),
    onError(error) {
      errors.push(error);
      recordEvent("error");
    },
    ...options,
  });
  after(() => reflector.stop());
  return {
    reflector,
    events,
    errors,
    async untilEvent(event, times = 1) {
      await changed.until(
        `"${event}" was observed ${times} times`,
        () => events.filter((seen) => seen === event).length >= times,
      );
    },
  };
}

export function secret(name: string, labels: Record<string, string> = {}): Secret {
  return { metadata: { name, labels } };
}
