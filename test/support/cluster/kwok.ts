import { glob, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ControlPlane } from "./control-plane.ts";
import { findFreePort } from "./find-free-port.ts";
import { podEndStage } from "./pod-end-stage.ts";
import { programPath } from "./programs.ts";
import { startProgram } from "./start-program.ts";

export interface KwokOptions {
  /** 1 by default. */
  readonly nodes?: number;
  /** 8 by default. */
  readonly gpusPerNode?: number;
  /** How running pods of Jobs end: all with success at once by default; none ends where the list is empty. */
  readonly endStages?: readonly object[];
  /** What the log of every container holds; without it no log can be read. */
  readonly logLines?: readonly string[];
}

export interface Kwok extends AsyncDisposable {
  /** Ends the simulation; its nodes stay, and fall silent. */
  readonly stop: () => Promise<void>;
}

const loopback = "127.0.0.1";
const stageFiles = fileURLToPath(new URL("stages/*.yaml", import.meta.url));

/** Adds simulated nodes, `simulated-0` and on, to a control plane: pods start at once and end as annotated. */
export async function startKwok(
  controlPlane: ControlPlane,
  options: KwokOptions = {},
): Promise<Kwok> {
  const { nodes = 1, gpusPerNode = 8, endStages = [podEndStage()] } = options;
  const stages = await Promise.all(
    (await Array.fromAsync(glob(stageFiles))).map((file) => readFile(file, "utf8")),
  );
  const configuration = join(controlPlane.folder, "stages.yaml");
  const logs =
    options.logLines === undefined
      ? undefined
      : await writeSimulatedLogs(controlPlane.folder, options.logLines);
  const resources = [...endStages, ...(logs?.resources ?? [])].map((resource) =>
    JSON.stringify(resource),
  );
  await writeFile(configuration, [...stages, ...resources].join("\n---\n"));
  const program = await startProgram(
    await programPath("kwok"),
    [
      `--kubeconfig=${controlPlane.kubeconfig}`,
      `--config=${configuration}`,
      "--manage-all-nodes=true",
      // Without leases the control plane takes the nodes for dead after 40 s.
      "--node-lease-duration-seconds=40",
      "--v=WARN",
      ...(logs?.flags ?? []),
    ],
    join(controlPlane.folder, "kwok.log"),
  );
  const items = Array.from({ length: nodes }, (_, index) =>
    simulatedNode(`simulated-${index}`, gpusPerNode),
  );
  await controlPlane.kubectl(
    ["create", "-f", "-"],
    JSON.stringify({ apiVersion: "v1", kind: "List", items }),
  );
  const selector = ["--selector=type=simulated", "--for=condition=Ready", "--timeout=60s"];
  await controlPlane.kubectl(["wait", "node", ...selector]).catch(async (cause: unknown) => {
    throw new Error(`The simulated nodes do not become ready:\n${await program.lastLines()}`, {
      cause,
    });
  });
  const stop = () => program.kill();
  return { stop, [Symbol.asyncDispose]: stop };
}

/** Every node answers for its pods' logs on one port, with the same lines for all of them. */
async function writeSimulatedLogs(folder: string, lines: readonly string[]) {
  const logsFile = join(folder, "container.log");
  const at = new Date().toISOString().replace("Z", "000000Z");
  await writeFile(logsFile, lines.map((line) => `${at} stdout F ${line}\n`).join(""));
  const port = await findFreePort(loopback);
  return {
    flags: [`--server-address=${loopback}:${port}`, `--node-ip=${loopback}`, `--node-port=${port}`],
    resources: [
      {
        apiVersion: "kwok.x-k8s.io/v1alpha1",
        kind: "ClusterLogs",
        metadata: { name: "logs" },
        spec: { logs: [{ logsFile, follow: false }] },
      },
    ],
  };
}

function simulatedNode(name: string, gpus: number): object {
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
      labels: { type: "simulated", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" },
    },
    status: { capacity: resources, allocatable: resources },
  };
}
