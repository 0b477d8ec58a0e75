import type {
  CoreV1Event,
  V1Job,
  V1Lease,
  V1Namespace,
  V1Node,
  V1ObjectMeta,
  V1Pod,
  V1Secret,
  V1TokenReview,
} from "@kubernetes/client-node";
import type { Message } from "./protobuf.ts";
import type { Wire } from "./wire.ts";

export type ObjectMeta = Wire<V1ObjectMeta>;
export type Pod = Wire<V1Pod>;
export type KubernetesEvent = Wire<CoreV1Event>;
export type Node = Wire<V1Node>;
export type Secret = Wire<V1Secret>;
export type Namespace = Wire<V1Namespace>;
export type Job = Wire<V1Job>;
export type Lease = Wire<V1Lease>;
export type TokenReview = Wire<V1TokenReview>;

export interface KubernetesObject {
  apiVersion?: string;
  kind?: string;
  metadata?: ObjectMeta;
}

/** An object as the API server answers it. Objects out of lists and caches may lack `apiVersion` and `kind`. */
export type Stored<T extends KubernetesObject> = T & { metadata: StoredMeta };

type StoredMeta = ObjectMeta & { name: string; uid: string; resourceVersion: string; creationTimestamp: string };

declare const objectOf: unique symbol;

/** Where the API server keeps objects of one kind, and their type. */
export interface ResourceType<T extends KubernetesObject> {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** What is read of an object in answers, which then come as protobuf; all of it, as JSON, where there is none. */
  readonly protobuf?: Message<Stored<T>>;
  readonly [objectOf]?: T;
}

/** Facts of a resource that this table does not hold, for instance of a custom one. */
export function resourceType<T extends KubernetesObject>(facts: ResourceType<T>): ResourceType<T> {
  return facts;
}

export const resources = {
  pods: resourceType<Pod>({ apiVersion: "v1", kind: "Pod", plural: "pods", namespaced: true }),
  events: resourceType<KubernetesEvent>({ apiVersion: "v1", kind: "Event", plural: "events", namespaced: true }),
  nodes: resourceType<Node>({ apiVersion: "v1", kind: "Node", plural: "nodes", namespaced: false }),
  secrets: resourceType<Secret>({ apiVersion: "v1", kind: "Secret", plural: "secrets", namespaced: true }),
  namespaces: resourceType<Namespace>({ apiVersion: "v1", kind: "Namespace", plural: "namespaces", namespaced: false }),
  jobs: resourceType<Job>({ apiVersion: "batch/v1", kind: "Job", plural: "jobs", namespaced: true }),
  leases: resourceType<Lease>({
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    plural: "leases",
    namespaced: true,
  }),
  tokenReviews: resourceType<TokenReview>({
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenReview",
    plural: "tokenreviews",
    namespaced: false,
  }),
};
