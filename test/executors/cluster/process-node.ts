import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { connectCluster } from "../../../src/kubernetes/connect-cluster.ts";
import { isNotFound } from "../../../src/kubernetes/kubernetes-error.ts";
import type { KubernetesClient } from "../../../src/kubernetes/kubernetes-client.ts";
import { createReflector, type Reflector } from "../../../src/kubernetes/reflector.ts";
import { type Pod, resources, type Stored } from "../../../src/kubernetes/resources.ts";
import type { ControlPlane } from "../../support/cluster/control-plane.ts";
import { nodes } from "../../support/cluster/test-resources.ts";
import { podToken } from "../../support/cluster/pod-token.ts";
import { findFreePort } from "../../support/find-free-port.ts";
import { inheritedEnvironment } from "../../support/inherited-environment.ts";

interface PodProcess {
  readonly child: ChildProcess;
  /** Lines with their time, as a kubelet keeps them. */
  readonly output: string[];
}

const worker = join(import.meta.dirname, "../../../src/worker/main.ts");
const capacity = {
  cpu: "64",
  memory: "256Gi",
  "ephemeral-storage": "1Ti",
  pods: "1000",
  "nvidia.com/gpu": "8",
};
const container = { name: "worker", image: "none", imageID: "", ready: false, restartCount: 0 };
/** The control plane takes a node for lost that is silent for 40 s. */
const heartbeatMs = 10_000;
const retryMs = 500;

/**
 * A node whose pods are worker processes on this machine, without images or isolation: it stands in for a kubelet where the
 * test has no right to run one. It starts and stops the pods of a namespace, mounts real tokens, reports how pods end and
 * serves their logs.
 */
export class ProcessNode implements AsyncDisposable {
  refusedReads = 0;
  /** While it is set, the API server cannot read logs. */
  isOutOfReach = false;
  readonly #controlPlane: ControlPlane;
  readonly #client: KubernetesClient;
  readonly #directory: string;
  readonly #name: string;
  readonly #processes = new Map<string, PodProcess>();
  readonly #outOfMemory = new Set<string>();
  /** What was done already, since every pod is reported several times. */
  readonly #done = new Set<string>();
  #server: Server | undefined;
  #pods: Reflector<Pod> | undefined;
  #heartbeat: NodeJS.Timeout | undefined;

  static async start(controlPlane: ControlPlane, namespace: string): Promise<ProcessNode> {
    const client = await connectCluster({ kubeconfig: controlPlane.kubeconfig }, { namespace });
    const node = new ProcessNode(
      controlPlane,
      client,
      await mkdtemp(join(tmpdir(), "process-node-")),
    );
    await node.#start();
    return node;
  }

  private constructor(controlPlane: ControlPlane, client: KubernetesClient, directory: string) {
    this.#controlPlane = controlPlane;
    this.#client = client;
    this.#directory = directory;
    this.#name = `processes-${client.namespace}`;
  }

  /** What a pod's process has printed. */
  podOutput(pod: string): string[] {
    return (this.#processes.get(pod)?.output ?? []).map((line) =>
      line.slice(line.indexOf(" ") + 1).trimEnd(),
    );
  }

  /** Kills a pod's process as the kernel does where its memory is used up. */
  killForMemory(pod: string): void {
    this.#outOfMemory.add(pod);
    this.kill(pod);
  }

  /** Kills a pod's process, if it has one. */
  kill(pod: string): void {
    this.#processes.get(pod)?.child.kill("SIGKILL");
  }

  isRunning(pod: string): boolean {
    const child = this.#processes.get(pod)?.child;
    return child !== undefined && child.exitCode === null && child.signalCode === null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#heartbeat);
    await this.#pods?.stop();
    for (const { child } of this.#processes.values()) child.kill("SIGKILL");
    this.#server?.closeAllConnections();
    this.#server?.close();
    await this.#client.delete(nodes, this.#name, { propagationPolicy: "Background" });
    await this.#client.close();
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #start(): Promise<void> {
    const { folder } = this.#controlPlane;
    const [cert, key] = await Promise.all(
      ["crt", "key"].map((end) => readFile(join(folder, `apiserver.${end}`))),
    );
    const port = await findFreePort();
    this.#server = createServer(
      { ...(cert && { cert }), ...(key && { key }) },
      (request, answer) => {
        const [, kind, , pod = ""] = (request.url ?? "").split(/[/?]/);
        const output = this.#processes.get(pod)?.output;
        if (this.isOutOfReach) {
          this.refusedReads++;
          return void answer.writeHead(503).end("The node is out of reach");
        }
        if (kind !== "containerLogs" || output === undefined)
          return void answer.writeHead(404).end();
        answer.end(output.join(""));
      },
    ).listen(port, "127.0.0.1");
    await once(this.#server, "listening");
    const labels = { "kubernetes.io/os": "linux" };
    await this.#client.create(nodes, { metadata: { name: this.#name, labels } });
    await this.#beat(port);
    this.#heartbeat = setInterval(
      () => void this.#beat(port).catch(() => "it beats again"),
      heartbeatMs,
    );
    const observePod = (pod: Stored<Pod>) => this.#observePod(pod);
    const fieldSelector = `spec.nodeName=${this.#name}`;
    const handlers = {
      onAdded: observePod,
      onUpdated: observePod,
      onError: () => "it tries again",
    };
    this.#pods = createReflector({
      client: this.#client,
      type: resources.pods,
      fieldSelector,
      ...handlers,
    });
  }

  async #beat(port: number): Promise<void> {
    const ready = { type: "Ready", status: "True", reason: "Running", message: "" };
    const status = {
      capacity,
      allocatable: capacity,
      addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
      conditions: [{ ...ready, lastHeartbeatTime: new Date().toISOString() }],
    };
    await this.#client.patch(nodes, this.#name, { status }, { subresource: "status" });
  }

  #observePod(pod: Stored<Pod>): void {
    const { uid, deletionTimestamp } = pod.metadata;
    const [key, work] =
      deletionTimestamp === undefined
        ? [uid, () => this.#run(pod)]
        : [`${uid} deleted`, () => this.#remove(pod)];
    if (this.#done.has(key)) return;
    this.#done.add(key);
    // The API server may be away: a kubelet tries again, too.
    work().catch(() => this.#done.delete(key));
  }

  async #run(pod: Stored<Pod>): Promise<void> {
    const { name, uid } = pod.metadata;
    if (pod.status?.phase !== "Pending") return;
    const folder = join(this.#directory, uid);
    await mkdir(folder, { recursive: true });
    const startedAt = new Date().toISOString();
    const { child, output } = await this.#spawn(pod, folder);
    this.#processes.set(name, { child, output });
    const closed = once(child, "close");
    await this.#patchStatus(name, {
      phase: "Running",
      startTime: startedAt,
      containerStatuses: [{ ...container, state: { running: { startedAt } } }],
    });
    await closed;
    const exitCode = child.exitCode ?? 137;
    const terminated = {
      exitCode,
      reason: this.#endReason(name, exitCode),
      message: await readFile(join(folder, "message"), "utf8").catch(() => ""),
      startedAt,
      finishedAt: new Date().toISOString(),
    };
    await this.#patchStatus(name, {
      phase: exitCode === 0 ? "Succeeded" : "Failed",
      containerStatuses: [{ ...container, state: { terminated } }],
    });
  }

  #endReason(pod: string, exitCode: number): string {
    if (this.#outOfMemory.has(pod)) return "OOMKilled";
    return exitCode === 0 ? "Completed" : "Error";
  }

  async #spawn({ metadata, spec }: Stored<Pod>, folder: string): Promise<PodProcess> {
    const { name, uid, namespace = "" } = metadata;
    const [tokenFile, messageFile] = [join(folder, "token"), join(folder, "message")];
    await writeFile(tokenFile, await podToken(this.#controlPlane, { namespace, name, uid }));
    const entries = (spec?.containers[0]?.env ?? []).map((entry) => [
      entry.name,
      entry.value ?? "",
    ]);
    const places = { MOS_WORK_DIR: folder, TMPDIR: folder, MOS_JOB_TOKEN_FILE: tokenFile };
    const child = spawn(process.execPath, [worker], {
      cwd: folder,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...inheritedEnvironment(),
        ...Object.fromEntries(entries),
        ...places,
        MOS_TERMINATION_LOG: messageFile,
      },
    });
    const output: string[] = [];
    for (const stream of [child.stdout, child.stderr]) {
      createInterface(stream).on("line", (line) =>
        output.push(`${new Date().toISOString()} ${line}\n`),
      );
    }
    return { child, output };
  }

  async #remove({ metadata: { name, uid } }: Stored<Pod>): Promise<void> {
    const found = this.#processes.get(name);
    if (found !== undefined && this.isRunning(name)) {
      found.child.kill("SIGTERM");
      await once(found.child, "close");
    }
    const now = { propagationPolicy: "Background", gracePeriodSeconds: 0, uid } as const;
    await this.#client.delete(resources.pods, name, now);
  }

  /** Tries again while the API server is away, as a kubelet does. */
  async #patchStatus(pod: string, status: NonNullable<Pod["status"]>): Promise<void> {
    while (this.#server?.listening === true) {
      try {
        await this.#client.patch(resources.pods, pod, { status }, { subresource: "status" });
        return;
      } catch (error) {
        if (isNotFound(error)) return;
        await delay(retryMs);
      }
    }
  }
}
