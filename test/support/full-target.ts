import type { z } from "zod";
import type { configuredTarget } from "../../src/contract/custom-resources/target-pod.ts";

/** A target that has every field of pods. */
export const fullTarget: z.input<typeof configuredTarget> = {
  name: "full",
  description: "Every field.",
  executionProvider: "cpu",
  operators: "standard",
  recipe: { scheme: "int8-weight" },
  gpu: { resource: "nvidia.com/gpu", count: 1 },
  resources: {
    cpu: "500m",
    memory: "1Gi",
    ephemeralStorage: "2Gi",
    limits: { cpu: "2", memory: "2Gi", ephemeralStorage: "4Gi" },
  },
  scratch: "20Gi",
  nodeSelector: { pool: "gpu" },
  tolerations: [{ key: "nvidia.com/gpu", operator: "Exists", effect: "NoSchedule" }],
  queue: { name: "gpus", priorityClass: "low" },
  pod: {
    labels: { team: "vision", "sidecar.istio.io/inject": "false" },
    annotations: { "cluster-autoscaler.kubernetes.io/safe-to-evict": "false" },
    env: [
      { name: "HTTPS_PROXY", value: "http://proxy.test:3128" },
      { name: "LICENSE", valueFrom: { secretKeyRef: { name: "license", key: "key" } } },
      { name: "REGION", valueFrom: { configMapKeyRef: { name: "site", key: "region" } } },
      { name: "NODE", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
    ],
    volumes: [
      { name: "settings", configMap: { name: "site", items: [{ key: "a", path: "a" }] } },
      { name: "certificates", secret: { secretName: "certificates", defaultMode: 0o440 } },
      { name: "memory", emptyDir: { medium: "Memory", sizeLimit: "1Gi" } },
      { name: "data", persistentVolumeClaim: { claimName: "data", readOnly: true } },
      { name: "keys", csi: { driver: "secrets-store.csi.k8s.io", readOnly: true } },
      {
        name: "disk",
        ephemeral: {
          volumeClaimTemplate: {
            spec: {
              accessModes: ["ReadWriteOnce"],
              resources: { requests: { storage: "10Gi" } },
            },
          },
        },
      },
    ],
    volumeMounts: [
      { name: "settings", mountPath: "/etc/site", readOnly: true },
      { name: "certificates", mountPath: "/etc/certificates", readOnly: true },
      { name: "memory", mountPath: "/dev/shm" },
      { name: "data", mountPath: "/data", subPath: "models", readOnly: true },
      { name: "keys", mountPath: "/keys", readOnly: true },
      { name: "disk", mountPath: "/disk" },
    ],
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [
            { matchExpressions: [{ key: "zone", operator: "In", values: ["a", "b"] }] },
          ],
        },
      },
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          {
            weight: 10,
            podAffinityTerm: {
              labelSelector: { matchLabels: { team: "vision" } },
              topologyKey: "kubernetes.io/hostname",
            },
          },
        ],
      },
    },
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: "topology.kubernetes.io/zone",
        whenUnsatisfiable: "ScheduleAnyway",
        labelSelector: { matchLabels: { team: "vision" } },
      },
    ],
    imagePullSecrets: [{ name: "registry" }],
    resourceClaims: [{ name: "gpu", resourceClaimTemplateName: "one-gpu", request: "gpu" }],
  },
};
