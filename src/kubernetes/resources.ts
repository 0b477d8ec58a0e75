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
import type { MessageReader } from "./protobuf.ts";
import type { Serialized } from "./serialized.ts";

export type ObjectMeta = Serialized<V1ObjectMeta>;
export type Pod = Serialized<V1Pod>;
export type KubernetesEvent = Serialized<CoreV1Event>;
export type Node = Serialized<V1Node>;
export type Secret = Serialized<V1Secret>;
export type Namespace = Serialized<V1Namespace>;
export type KubernetesJob = Serialized<V1Job>;
export type Lease = Serialized<V1Lease>;
export type TokenReview = Serialized<V1TokenReview>;

export interface KubernetesObject {
  apiVersion?: string;
  kind?: string;
  metadata?: ObjectMeta;
}

/** An object as the API server answers it. Objects out of lists and caches may lack `apiVersion` and `kind`. */
export type Stored<T extends KubernetesObject> = T & { metadata: StoredMeta };

type StoredMeta = ObjectMeta & {
  name: string;
  uid: string;
  resourceVersion: string;
  creationTimestamp: string;
};

declare const objectType: unique symbol;

/** Where the API server keeps objects of one kind, and their type. */
export interface ResourceType<T extends KubernetesObject> {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** What is read of an object in answers, which then come as protobuf; all of it, as JSON, where there is none. */
  readonly protobuf?: MessageReader<Stored<T>>;
  readonly [objectType]?: T;
}

/** Facts of a resource that this table does not hold, for instance of a custom one. */
export function resourceType<T extends KubernetesObject>(facts: ResourceType<T>): ResourceType<T> {
  return facts;
}

export const resources = {
  pods: resourceType<Pod>({ apiVersion: "v1", kind: "Pod", plural: "pods", namespaced: true }),
  events: resourceType<KubernetesEvent>({
    apiVersion: "v1",
    kind: "Event",
    plural: "events",
    namespaced: true,
  }),
  nodes: resourceType<Node>({ apiVersion: "v1", kind: "Node", plural: "nodes", namespaced: false }),
  secrets: resourceType<Secret>({
    apiVersion: "v1",
    kind: "Secret",
    plural: "secrets",
    namespaced: true,
  }),
  namespaces: resourceType<Namespace>({
    apiVersion: "v1",
    kind: "Namespace",
    plural: "namespaces",
    namespaced: false,
  }),
  jobs: resourceType<KubernetesJob>({
    apiVersion: "batch/v1",
    kind: "Job",
    plural: "jobs",
    namespaced: true,
  }),
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
