import { once } from "node:events";
import { copyFile, mkdir } from "node:fs/promises";
import { connect } from "node:net";
import { basename, join } from "node:path";
import { type Client, createClient } from "../../src/client/create-client.ts";
import { routes } from "../../src/contract/routes/routes.ts";
import { apiVersion } from "../../src/contract/custom-resources/api-group.ts";
import { chartFolder, helm, valueFlags } from "../charts/helm.ts";
import { imageNames } from "../support/cluster/image-builds.ts";
import type { NodeCluster } from "../support/cluster/start-cluster.ts";
import { targets } from "./targets.ts";
import { until } from "../support/until.ts";

export const release = "model-optimization";
export const nodeName = "node-0";
export const namespace = "models";
/** Longest wait for anything: a busy machine is no reason to fail. */
export const patience = "--timeout=240s";

export interface Installation {
  readonly cluster: NodeCluster;
  /** Arguments of Helm: the values that it was installed with. */
  readonly valueFlags: readonly string[];
  /** Resolves when operator and service are ready. */
  readonly untilReady: () => Promise<void>;
  /** In the release's namespace. */
  readonly kubectl: (args: readonly string[], input?: string) => Promise<string>;
  /** Creates a resource with `kubectl apply`. */
  readonly apply: (kind: "CompressionJob" | "Batch", name: string, spec: object) => Promise<void>;
  /** A field of a resource by its JSON path; empty where it has none. */
  readonly readResourceField: (resource: string, path: string) => Promise<string>;
  /** Waits until a field has the value, or any. */
  readonly untilField: (resource: string, path: string, value?: string) => Promise<void>;
  /** Of the service's API; ends in `/v1`. */
  readonly baseUrl: string;
  /** With every scope. */
  readonly token: string;
  readonly client: Client;
}

export interface InstallOptions {
  /** Files that workers find in `/models`. */
  readonly mountedModels: readonly string[];
}

/**
 * Installs the chart as users do, in a namespace of restricted pods, with the default values but for
 * images, targets and hosts in this network. Volumes and a port of the service are created beside it, since the node has no
 * storage class and no ingress.
 */
export async function install(
  cluster: NodeCluster,
  { mountedModels }: InstallOptions,
): Promise<Installation> {
  await cluster.kubectl([
    "delete",
    "crd",
    "compressionjobs.modeloptimization.dev",
    "batches.modeloptimization.dev",
  ]);
  await cluster.kubectl(["create", "namespace", namespace]);
  await cluster.kubectl([
    "label",
    "namespace",
    namespace,
    "pod-security.kubernetes.io/enforce=restricted",
  ]);
  const [data, models] = [join(cluster.folder, "data"), modelFolder(cluster)];
  for (const folder of [data, models]) await mkdir(folder);
  for (const file of mountedModels) await copyFile(file, join(models, basename(file)));
  const volumeOfService = volume({ name: `${release}-service`, namespace }, data);
  await cluster.kubectl(["create", "-f", "-"], JSON.stringify(volumeOfService));
  await mountModels(cluster, namespace);

  const flags = valueFlags(values);
  await helm(
    ["install", release, chartFolder, `--namespace=${namespace}`, ...flags],
    cluster.kubeconfig,
  );
  return openInstallation(cluster, flags);
}

/** An installation that is there, with a port of the node that leads to the service. */
export async function openInstallation(
  cluster: NodeCluster,
  flags: readonly string[],
): Promise<Installation> {
  const kubectl = (args: readonly string[], input?: string) =>
    cluster.kubectl(["-n", namespace, ...args], input);
  const readResourceField = (resource: string, path: string) =>
    kubectl(["get", resource, "-o", `jsonpath={${path}}`]);
  await kubectl(["create", "-f", "-"], JSON.stringify(entrance));
  const untilReady = async () => {
    for (const component of ["operator", "service"]) {
      await kubectl(["rollout", "status", `deployment/${release}-${component}`, patience]);
    }
    const port = await readResourceField("service/entrance", ".spec.ports[0].nodePort");
    await until("the node's port leads to the service", () =>
      isListening(cluster.nodeAddress, Number(port)),
    );
  };
  await untilReady();
  const notes = await helm(
    ["get", "notes", release, `--namespace=${namespace}`],
    cluster.kubeconfig,
  );
  const [, tokenCommand = ""] = /kubectl (.*token create.*)/.exec(notes) ?? [];
  const token = (await cluster.kubectl(tokenCommand.split(" "))).trim();
  const port = await readResourceField("service/entrance", ".spec.ports[0].nodePort");
  const baseUrl = `http://${cluster.nodeAddress}:${port}/v1`;
  return {
    cluster,
    kubectl,
    async apply(kind, name, spec) {
      await kubectl(
        ["apply", "-f", "-"],
        JSON.stringify({ apiVersion, kind, metadata: { name }, spec }),
      );
    },
    valueFlags: flags,
    untilReady,
    readResourceField,
    async untilField(resource, path, value) {
      const wanted = value === undefined ? "" : `=${value}`;
      await kubectl(["wait", resource, `--for=jsonpath={${path}}${wanted}`, patience]);
    },
    baseUrl,
    token,
    client: createClient({ routes, baseUrl, token }),
  };
}

export const values = {
  service: { allowPrivateAddresses: true },
  image: imageValues(imageNames.service),
  worker: {
    image: imageValues(imageNames.worker),
    allowedRoots: ["/models"],
    pod: {
      volumes: [{ name: "models", persistentVolumeClaim: { claimName: "models" } }],
      volumeMounts: [{ name: "models", mountPath: "/models", readOnly: true }],
    },
  },
  targets,
};

/** A port of the node that leads to the service. */
export const entrance = {
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "entrance" },
  spec: {
    type: "NodePort",
    selector: { "app.kubernetes.io/component": "service" },
    ports: [{ port: 8080, targetPort: "http" }],
  },
};

/** The node's proxy may notice new pods after the API server called them ready. */
async function isListening(host: string, port: number): Promise<boolean> {
  const socket = connect(port, host);
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

function imageValues(name: string): object {
  const [repository, tag] = name.split(":");
  return { repository, tag };
}

function modelFolder({ folder }: NodeCluster): string {
  return join(folder, "models");
}

/** Gives a namespace the claim that workers mount as `/models`. */
export async function mountModels(cluster: NodeCluster, claimNamespace: string): Promise<void> {
  const claimed = { name: "models", namespace: claimNamespace };
  for (const object of [volume(claimed, modelFolder(cluster)), claim(claimed)])
    await cluster.kubectl(["create", "-f", "-"], JSON.stringify(object));
}

interface Claimed {
  readonly name: string;
  readonly namespace: string;
}

/** A volume for the claim of that name in the release's namespace. */
export async function addVolume(cluster: NodeCluster, name: string): Promise<void> {
  const path = join(cluster.folder, name);
  await mkdir(path);
  const object = volume({ name, namespace }, path);
  await cluster.kubectl(["create", "-f", "-"], JSON.stringify(object));
}

/** A folder of this machine for the claim of that name. */
function volume(claimRef: Claimed, path: string): object {
  const matchExpressions = [{ key: "kubernetes.io/hostname", operator: "In", values: [nodeName] }];
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name: `${claimRef.namespace}-${claimRef.name}` },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "50Gi" },
      claimRef,
      local: { path },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
    },
  };
}

export function claim(metadata: Claimed): object {
  const spec = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
  return { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata, spec };
}
