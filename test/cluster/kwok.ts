import { glob, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ControlPlane } from "./control-plane.ts";
import { podEnd } from "./pod-end.ts";
import { programPath } from "./programs.ts";
import { startProgram } from "./start-program.ts";

export interface KwokOptions {
  /** 1 by default. */
  readonly nodes?: number;
  /** 8 by default. */
  readonly gpusPerNode?: number;
  /** How running pods of Jobs end: all with success at once by default; none ends where the list is empty. */
  readonly ends?: readonly object[];
}

export interface Kwok extends AsyncDisposable {
  /** Ends the simulation; its nodes stay, and fall silent. */
  readonly stop: () => Promise<void>;
}

const stageFiles = fileURLToPath(new URL("stages/*.yaml", import.meta.url));

/** Adds simulated nodes, `simulated-0` and on, to a control plane: pods start at once and end as told. */
export async function startKwok(controlPlane: ControlPlane, options: KwokOptions = {}): Promise<Kwok> {
  const { nodes = 1, gpusPerNode = 8, ends = [podEnd()] } = options;
  const stages = await Promise.all((await Array.fromAsync(glob(stageFiles))).map((file) => readFile(file, "utf8")));
  const configuration = join(controlPlane.folder, "stages.yaml");
  await writeFile(configuration, [...stages, ...ends.map((end) => JSON.stringify(end))].join("\n---\n"));
  const program = await startProgram(
    await programPath("kwok"),
    [
      `--kubeconfig=${controlPlane.kubeconfig}`,
      `--config=${configuration}`,
      "--manage-all-nodes=true",
      // Without leases the control plane takes the nodes for dead after 40 s.
      "--node-lease-duration-seconds=40",
      "--v=WARN",
    ],
    join(controlPlane.folder, "kwok.log"),
  );
  const items = Array.from({ length: nodes }, (_, index) => simulatedNode(`simulated-${index}`, gpusPerNode));
  await controlPlane.kubectl(["create", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  const selector = ["--selector=type=simulated", "--for=condition=Ready", "--timeout=60s"];
  await controlPlane.kubectl(["wait", "node", ...selector]).catch(async (cause: unknown) => {
    throw new Error(`The simulated nodes do not become ready:\n${await program.lastLines()}`, { cause });
  });
  const stop = () => program.kill();
  return { stop, [Symbol.asyncDispose]: stop };
}

function simulatedNode(name: string, gpus: number): object {
  const resources = { cpu: "256", memory: "4Ti", pods: "10000", "nvidia.com/gpu": String(gpus) };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels: { type: "simulated", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" } },
    status: { capacity: resources, allocatable: resources },
  };
}
