import type {
  CoreV1Event,
  V1Deployment,
  V1Job,
  V1Lease,
  V1Namespace,
  V1Node,
  V1ObjectMeta,
  V1Pod,
  V1SubjectAccessReview,
  V1TokenReview,
} from "@kubernetes/client-node";
import type { MessageReader } from "./protobuf/message-reader.ts";

export type ObjectMeta = Serialized<V1ObjectMeta>;
export type Pod = Serialized<V1Pod>;
export type KubernetesEvent = Serialized<CoreV1Event>;
export type KubernetesJob = Serialized<V1Job>;
type Deployment = Serialized<V1Deployment>;
type Namespace = Serialized<V1Namespace>;
type Node = Serialized<V1Node>;
export type Lease = Serialized<V1Lease>;
export type TokenReview = Serialized<V1TokenReview>;
type SubjectAccessReview = Serialized<V1SubjectAccessReview>;

export interface KubernetesObject {
  apiVersion?: string;
  kind?: string;
  metadata?: ObjectMeta;
}

/**
 * An object as the API server returns it. Objects of lists and caches may lack `apiVersion` and
 * `kind`.
 */
export type Stored<T extends KubernetesObject> = T & { metadata: StoredMeta };

type StoredMeta = ObjectMeta & {
  name: string;
  uid: string;
  resourceVersion: string;
  creationTimestamp: string;
};

declare const objectType: unique symbol;

/** A resource of the API server, and the type of its objects. */
export interface ResourceType<T extends KubernetesObject> {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /**
   * Reader of the fields that are used, from responses in protobuf; without it, responses are JSON.
   */
  readonly protobuf?: MessageReader<Stored<T>>;
  readonly [objectType]?: T;
}

/** A resource that the table below lacks, for instance a custom one. */
export function resourceType<T extends KubernetesObject>(facts: ResourceType<T>): ResourceType<T> {
  return facts;
}

function namespacedType<T extends KubernetesObject>(
  apiVersion: string,
  kind: string,
  plural: string,
): ResourceType<T> {
  return { apiVersion, kind, plural, namespaced: true };
}

function clusterType<T extends KubernetesObject>(
  apiVersion: string,
  kind: string,
  plural: string,
): ResourceType<T> {
  return { apiVersion, kind, plural, namespaced: false };
}

export const resources = {
  pods: namespacedType<Pod>("v1", "Pod", "pods"),
  events: namespacedType<KubernetesEvent>("v1", "Event", "events"),
  jobs: namespacedType<KubernetesJob>("batch/v1", "Job", "jobs"),
  leases: namespacedType<Lease>("coordination.k8s.io/v1", "Lease", "leases"),
  deployments: namespacedType<Deployment>("apps/v1", "Deployment", "deployments"),
  namespaces: clusterType<Namespace>("v1", "Namespace", "namespaces"),
  nodes: clusterType<Node>("v1", "Node", "nodes"),
  subjectAccessReviews: clusterType<SubjectAccessReview>(
    "authorization.k8s.io/v1",
    "SubjectAccessReview",
    "subjectaccessreviews",
  ),
  tokenReviews: clusterType<TokenReview>("authentication.k8s.io/v1", "TokenReview", "tokenreviews"),
};

/**
 * A type of the Kubernetes client in the form of its JSON: dates are ISO strings, and names that
 * the client escapes with an underscore lack it.
 */
export type Serialized<T> = T extends Date
  ? string
  : T extends readonly (infer Element)[]
    ? Serialized<Element>[]
    : T extends object
      ? { [Key in keyof T as Key extends `_${infer Name}` ? Name : Key]: Serialized<T[Key]> }
      : T;
