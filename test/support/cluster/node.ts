import { writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import type { ControlPlane } from "./control-plane.ts";
import {
  kubeletConfiguration,
  nameServerConfiguration,
  proxyConfiguration,
} from "./node-configuration.ts";
import { programPath } from "./programs.ts";
import type { Sandbox } from "./sandbox.ts";

export interface NodeOptions {
  /** Of the container runtime. */
  readonly socket: string;
  /** Of all pods. */
  readonly cgroup: string;
  /** Pods can ask for them, and find none. */
  readonly gpus: number;
}

const nodeName = "node-0";
const serviceRange = "10.0.0.0/24";

/** Makes the sandbox a node with DNS and services, and resolves when pods can run there. */
export async function startNode(
  sandbox: Sandbox,
  controlPlane: ControlPlane,
  options: NodeOptions,
): Promise<void> {
  const { folder, kubeconfig, kubectl } = controlPlane;
  const { socket, cgroup, gpus } = options;
  const address = sandbox.nodeAddress;
  await sandbox.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward");
  await sandbox.run("ip", "route", "add", serviceRange, "dev", "node0");

  const write = async (name: string, content: string | object) => {
    const path = join(folder, name);
    await writeFile(path, typeof content === "string" ? content : JSON.stringify(content));
    return path;
  };
  const start = (program: string, args: readonly string[]) =>
    sandbox.start(program, args, join(folder, `${basename(program)}.log`));

  const kubelet = await start(await programPath("kubelet"), [
    `--config=${await write("kubelet.json", kubeletConfiguration({ address, socket, cgroup }))}`,
    `--kubeconfig=${kubeconfig}`,
    `--hostname-override=${nodeName}`,
    `--node-ip=${address}`,
    "--root-dir=/run/kubelet",
    "--cert-dir=/run/kubelet/pki",
  ]);
  const proxy = await write("kube-proxy.json", proxyConfiguration(kubeconfig));
  await start(await programPath("kube-proxy"), [
    `--config=${proxy}`,
    `--hostname-override=${nodeName}`,
  ]);
  await start(await programPath("coredns"), [
    `-conf=${await write("Corefile", nameServerConfiguration(address, kubeconfig))}`,
  ]);

  await kubectl(["wait", "--for=create", "node", nodeName, "--timeout=240s"]);
  const resources = { "nvidia.com/gpu": String(gpus) };
  const patch = JSON.stringify({ status: { capacity: resources, allocatable: resources } });
  await kubectl(["patch", "node", nodeName, "--subresource=status", `--patch=${patch}`]);
  await kubectl(["wait", "--for=condition=Ready", "node", nodeName, "--timeout=240s"]).catch(
    async (cause: unknown) => {
      throw new Error(`The node does not become ready:\n${await kubelet.lastLines()}`, { cause });
    },
  );
}
