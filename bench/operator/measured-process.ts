import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { fetch } from "undici";
import type { ControlPlane } from "../../test/support/cluster/control-plane.ts";
import { findFreePort } from "../../test/support/find-free-port.ts";
import { readPeakOfProcess } from "../../src/engine/runtime/read-peak-memory-bytes.ts";

/**
 * Filled by the first process of each kind when it ends, as the build of the image does. A process
 * that is killed fills it in part.
 */
const compileCache = join(tmpdir(), "model-optimization-bench-compile-cache");
await rm(compileCache, { recursive: true, force: true });
/** The chart's flags, and the heap size that Node chooses in a container of the chart's 512 MiB. */
const flags = [
  "--max-semi-space-size=2",
  "--heap-growing-percent=25",
  "--single-threaded-gc",
  "--no-incremental-marking",
  "--optimize-for-size",
  "--max-old-space-size=256",
];
/** Where each answers for its metrics. */
const ports = { service: "MOS_PORT", operator: "MOS_HEALTH_PORT" };
const mains = { service: "../../src/service/main.ts", operator: "../../operator/main.ts" };

export interface MeasuredProcess extends AsyncDisposable {
  /** In Prometheus' text format. */
  metrics(): Promise<string>;
  /** Largest resident memory so far. */
  peakBytes(): Promise<number>;
}

interface ProcessOptions {
  readonly cluster: Pick<ControlPlane, "url" | "adminToken" | "folder">;
  readonly namespace: string;
  /** In the form of the targets file. */
  readonly targets: readonly object[];
}

/** Runs a command with a service account mounted, as in a pod. Needs root, for its own mounts. */
const asInPod = `mount -t tmpfs tmpfs /run && mkdir -p /run/secrets/kubernetes.io &&
  cp -r "$0" /run/secrets/kubernetes.io/serviceaccount && exec "$@"`;

/**
 * Starts the operator, or the service with the cluster executor, as a process that finds what a pod
 * has, with the chart's settings of Node. Resolves when it is ready.
 */
export async function startMeasuredProcess(
  name: keyof typeof mains,
  { cluster, namespace, targets }: ProcessOptions,
): Promise<MeasuredProcess> {
  const directory = await mkdtemp(join(tmpdir(), `${name}-`));
  const targetsFile = join(directory, "targets.yaml");
  await writeFile(targetsFile, JSON.stringify({ targets }));
  const account = join(directory, "serviceaccount");
  await mkdir(account);
  await copyFile(join(cluster.folder, "apiserver.crt"), join(account, "ca.crt"));
  await writeFile(join(account, "token"), cluster.adminToken);
  await writeFile(join(account, "namespace"), namespace);
  const port = String(await findFreePort());
  const { PATH = "" } = process.env;
  const { hostname, port: clusterPort } = new URL(cluster.url);
  const main = fileURLToPath(new URL(mains[name], import.meta.url));
  const child = spawn(
    "unshare",
    ["--mount", "sh", "-c", asInPod, account, process.execPath, ...flags, main],
    {
      env: {
        PATH,
        HOME: directory,
        NODE_COMPILE_CACHE: compileCache,
        MALLOC_MMAP_THRESHOLD_: "8192",
        KUBERNETES_SERVICE_HOST: hostname,
        KUBERNETES_SERVICE_PORT: clusterPort,
        MOS_TARGETS_FILE: targetsFile,
        MOS_EXECUTOR: "cluster",
        MOS_DATA_DIR: directory,
        [ports[name]]: port,
        MOS_WORKER_IMAGE: "worker",
        MOS_SERVICE_URL: "http://127.0.0.1:9",
      },
      stdio: ["ignore", "ignore", "inherit"],
    },
  );
  await untilReady(child, `http://127.0.0.1:${port}/readyz`);
  return {
    metrics: async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text(),
    peakBytes: async () => readPeakOfProcess(child.pid ?? Number.NaN),
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
