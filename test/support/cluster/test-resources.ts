import type { V1Namespace, V1Node, V1Secret, V1ServiceAccount } from "@kubernetes/client-node";
import { resourceType, type Serialized } from "../../../src/kubernetes/resources.ts";

export type Secret = Serialized<V1Secret>;

const apiVersion = "v1";

export const secrets = resourceType<Secret>({
  apiVersion,
  kind: "Secret",
  plural: "secrets",
  namespaced: true,
});

export const serviceAccounts = resourceType<Serialized<V1ServiceAccount>>({
  apiVersion,
  kind: "ServiceAccount",
  plural: "serviceaccounts",
  namespaced: true,
});

export const nodes = resourceType<Serialized<V1Node>>({
  apiVersion,
  kind: "Node",
  plural: "nodes",
  namespaced: false,
});

export const namespaces = resourceType<Serialized<V1Namespace>>({
  apiVersion,
  kind: "Namespace",
  plural: "namespaces",
  namespaced: false,
});
