import { basename } from "node:path";
import { buildImages } from "./build-images.ts";
import { createCgroup, removeCgroup } from "./cgroups.ts";
import { startContainerRuntime } from "./container-runtime.ts";
import { startControlPlane, type ControlPlane, type ControlPlaneOptions } from "./control-plane.ts";
import type { ImageName } from "./image-builds.ts";
import { startNode } from "./node.ts";
import { createRunFolder } from "./run-folder.ts";
import { startSandbox } from "./sandbox.ts";

export interface ClusterOptions extends Pick<ControlPlaneOptions, "auditedNamespace"> {
  /** What pods can run; only Node by default. */
  readonly images?: readonly ImageName[];
  /** Simulated ones of the node; 4 by default. */
  readonly gpus?: number;
}

export interface NodeCluster extends ControlPlane {
  /** Of this machine, as pods see it: a server that pods shall reach listens there. */
  readonly hostAddress: string;
  /** Of the node: NodePorts answer there. */
  readonly nodeAddress: string;
}

/** Starts a control plane and a node that runs pods, with the images loaded. Needs Linux and root. */
export async function startCluster({
  images = ["node"],
  gpus = 4,
  auditedNamespace,
}: ClusterOptions = {}): Promise<NodeCluster> {
  const archives = await buildImages(["pause", ...images]);
  const folder = await createRunFolder();
  const cgroup = basename(folder);
  await using parts = new AsyncDisposableStack();
  await createCgroup(cgroup);
  parts.defer(() => removeCgroup(cgroup));
  const sandbox = await startSandbox(folder);
  parts.defer(sandbox.stop);
  const { hostAddress, nodeAddress } = sandbox;
  const [controlPlane, socket] = await Promise.all([
    startControlPlane({ folder, address: hostAddress, auditedNamespace }).then((started) =>
      parts.use(started),
    ),
    startContainerRuntime(sandbox, folder, archives),
  ]);
  await startNode(sandbox, controlPlane, { socket, cgroup, gpus });
  const started = parts.move();
  const stop = () => started.disposeAsync();
  return { ...controlPlane, hostAddress, nodeAddress, stop, [Symbol.asyncDispose]: stop };
}
