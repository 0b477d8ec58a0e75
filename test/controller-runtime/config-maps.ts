import { resourceType, type KubernetesObject } from "../../src/kubernetes/resources.ts";

export interface ConfigMap extends KubernetesObject {
  data?: Record<string, string>;
}

/** Small objects that nobody else cares about. */
export const configMaps = resourceType<ConfigMap>({
  apiVersion: "v1",
  kind: "ConfigMap",
  plural: "configmaps",
  namespaced: true,
});

export const notRootCertificate = "metadata.name!=kube-root-ca.crt";
