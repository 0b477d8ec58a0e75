import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { fetch } from "undici";
import { freePort } from "../../test/cluster/free-port.ts";

const mains = { service: "../../src/server/main.ts", operator: "../../operator/main.ts" };

export interface MeasuredProcess extends AsyncDisposable {
  /** In Prometheus' text format. */
  metrics(): Promise<string>;
  /** Largest resident memory so far. */
  peakBytes(): Promise<number>;
}

interface Surroundings {
  readonly KUBECONFIG: string;
  readonly MOS_NAMESPACE: string;
  /** As the targets file has them. */
  readonly targets: readonly object[];
}

/** Starts the operator, or the service in a cluster's mode, as a process of its own, and waits until it is ready. */
export async function startMeasuredProcess(
  name: keyof typeof mains,
  { targets, ...cluster }: Surroundings,
): Promise<MeasuredProcess> {
  const directory = await mkdtemp(join(tmpdir(), `${name}-`));
  const targetsFile = join(directory, "targets.yaml");
  await writeFile(targetsFile, JSON.stringify({ targets }));
  const port = String(await freePort("127.0.0.1"));
  const { PATH = "" } = process.env;
  const child = spawn(process.execPath, [fileURLToPath(new URL(mains[name], import.meta.url))], {
    env: {
      PATH,
      HOME: directory,
      ...cluster,
      MOS_KUBECONFIG: cluster.KUBECONFIG,
      MOS_TARGETS_FILE: targetsFile,
      MOS_EXECUTOR: "cluster",
      MOS_DATA_DIR: directory,
      MOS_PORT: port,
      MOS_HEALTH_PORT: port,
      MOS_WORKER_IMAGE: "worker",
      MOS_SERVICE_URL: "http://127.0.0.1:9",
    },
    stdio: ["ignore", "ignore", "inherit"],
  });
  await untilReady(child, `http://127.0.0.1:${port}/readyz`);
  return {
    metrics: async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text(),
    async peakBytes() {
      const status = await readFile(`/proc/${child.pid}/status`, "utf8");
      return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await once(child, "exit");
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function untilReady(child: ChildProcess, url: string): Promise<void> {
  const pollMs = 100;
  while (child.exitCode === null) {
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  throw new Error(`The process ended with code ${child.exitCode} before it was ready`);
}
