import { glob, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ControlPlane } from "./control-plane.ts";
import { findFreePort } from "../find-free-port.ts";
import { podEndStage } from "./pod-end-stage.ts";
import { programPath } from "./programs.ts";
import { startProgram } from "./start-program.ts";

export interface KwokOptions {
  /** With it the nodes have its name and a number, and no others are simulated. */
  readonly name?: string;
  /** 1 by default. */
  readonly nodes?: number;
  /** 8 by default. */
  readonly gpusPerNode?: number;
  /** How running pods of Jobs end: all with success at once by default; none ends where the list is empty. */
  readonly endStages?: readonly object[];
  /** What the log of every container holds; without it no log can be read, but by `logPort`. */
  readonly logLines?: readonly string[];
  /** A port of this machine where the caller answers for the kubelets' logs. */
  readonly logPort?: number;
}

export interface Kwok extends AsyncDisposable {
  /** Ends the simulation; its nodes stay, and fall silent. */
  readonly stop: () => Promise<void>;
  /** Its nodes report nothing and do nothing until `resume()`. */
  readonly pause: () => void;
  readonly resume: () => void;
}

const loopback = "127.0.0.1";
const stageFiles = fileURLToPath(new URL("stages/*.yaml", import.meta.url));

/**
 * Adds simulated nodes, `simulated-0` and on by default, to a control plane: pods start at once and
 * end as annotated.
 */
export async function startKwok(
  controlPlane: ControlPlane,
  options: KwokOptions = {},
): Promise<Kwok> {
  const { name = "simulated", nodes = 1, gpusPerNode = 8, endStages = [podEndStage()] } = options;
  const stages = await Promise.all(
    (await Array.fromAsync(glob(stageFiles))).map((file) => readFile(file, "utf8")),
  );
  const configuration = join(controlPlane.folder, `stages-${name}.yaml`);
  const logs = await findLogs(controlPlane.folder, options);
  const resources = [...endStages, ...logs.resources].map((resource) => JSON.stringify(resource));
  await writeFile(configuration, [...stages, ...resources].join("\n---\n"));
  const program = await startProgram(
    await programPath("kwok"),
    [
      `--kubeconfig=${controlPlane.kubeconfig}`,
      `--config=${configuration}`,
      ...(options.name === undefined
        ? ["--manage-all-nodes=true"]
        : [`--manage-nodes-with-label-selector=type=${name}`]),
      // Without leases the control plane takes the nodes for dead after 40 s.
      "--node-lease-duration-seconds=40",
      "--v=WARN",
      ...logs.flags,
    ],
    join(controlPlane.folder, `kwok-${name}.log`),
  );
  const items = Array.from({ length: nodes }, (_, index) =>
    simulatedNode(name, index, gpusPerNode),
  );
  await controlPlane.kubectl(
    ["create", "-f", "-"],
    JSON.stringify({ apiVersion: "v1", kind: "List", items }),
  );
  const selector = [`--selector=type=${name}`, "--for=condition=Ready", "--timeout=240s"];
  await controlPlane.kubectl(["wait", "node", ...selector]).catch(async (cause: unknown) => {
    throw new Error(`The simulated nodes do not become ready:\n${await program.lastLines()}`, {
      cause,
    });
  });
  const stop = () => program.kill();
  return {
    stop,
    pause: () => void process.kill(program.pid, "SIGSTOP"),
    resume: () => void process.kill(program.pid, "SIGCONT"),
    [Symbol.asyncDispose]: stop,
  };
}

async function findLogs(folder: string, { logLines, logPort }: KwokOptions) {
  const serverPort = await findFreePort();
  if (logLines === undefined && logPort === undefined) return { flags: [], resources: [] };
  return {
    flags: [
      // By default the server takes the nodes' port.
      `--server-address=${loopback}:${serverPort}`,
      `--node-ip=${loopback}`,
      `--node-port=${logPort ?? serverPort}`,
    ],
    resources: logLines === undefined ? [] : [await writeSimulatedLogs(folder, logLines)],
  };
}

/** Every node answers for its pods' logs on one port, with the same lines for all of them. */
async function writeSimulatedLogs(folder: string, lines: readonly string[]): Promise<object> {
  const logsFile = join(folder, "container.log");
  const at = new Date().toISOString().replace("Z", "000000Z");
  await writeFile(logsFile, lines.map((line) => `${at} stdout F ${line}\n`).join(""));
  return {
    apiVersion: "kwok.x-k8s.io/v1alpha1",
    kind: "ClusterLogs",
    metadata: { name: "logs" },
    spec: { logs: [{ logsFile, follow: false }] },
  };
}

function simulatedNode(type: string, index: number, gpus: number): object {
  const name = `${type}-${index}`;
  const resources = {
    cpu: "256",
    memory: "4Ti",
    "ephemeral-storage": "16Ti",
    pods: "10000",
    "nvidia.com/gpu": String(gpus),
  };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      labels: { type, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" },
    },
    status: { capacity: resources, allocatable: resources },
  };
}
