import { createHash } from "node:crypto";
import type { KubernetesObject, ResourceType, Stored } from "../kubernetes/resources.ts";

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
export function buildEvent<T extends KubernetesObject>(occurrence: Occurrence<T>) {
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
