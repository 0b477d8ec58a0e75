import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { resourceLabels } from "../../../src/contract/custom-resources/resource-labels.ts";
import { connectCluster } from "../../../src/kubernetes/connect-cluster.ts";
import { isNotFound } from "../../../src/kubernetes/kubernetes-error.ts";
import type { KubernetesClient } from "../../../src/kubernetes/kubernetes-client.ts";
import { createReflector, type Reflector } from "../../../src/kubernetes/reflector.ts";
import { type Pod, resources, type Stored } from "../../../src/kubernetes/resources.ts";
import type { ControlPlane } from "../../support/cluster/control-plane.ts";
import { nodes } from "../../support/cluster/test-resources.ts";
import { podToken } from "../../support/cluster/pod-token.ts";
import { findFreePort } from "../../support/find-free-port.ts";
import { type PodProgram, spawnWorker, type StartProgram } from "./pod-program.ts";

interface PodProcess {
  readonly jobId: string | undefined;
  readonly program: PodProgram;
  /** Lines with their time, as a kubelet keeps them. */
  readonly output: string[];
  isRunning: boolean;
  /** Resolves when its end is reported. */
  readonly ended: Promise<void>;
}

interface NodeOptions {
  /** Starts what runs in every pod; a worker's process by default. */
  readonly startProgram?: StartProgram | undefined;
}

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
  readonly #startProgram: StartProgram;
  readonly name: string;
  readonly #processes = new Map<string, PodProcess>();
  readonly #outOfMemory = new Set<string>();
  /** What was done already, since every pod is reported several times. */
  readonly #done = new Set<string>();
  #server: Server | undefined;
  #pods: Reflector<Pod> | undefined;
  #heartbeat: NodeJS.Timeout | undefined;

  static async start(
    controlPlane: ControlPlane,
    namespace: string,
    { startProgram = spawnWorker }: NodeOptions = {},
  ): Promise<ProcessNode> {
    const client = await connectCluster({ kubeconfig: controlPlane.kubeconfig }, { namespace });
    const directory = await mkdtemp(join(tmpdir(), "process-node-"));
    const node = new ProcessNode(controlPlane, client, { directory, startProgram });
    await node.#start();
    return node;
  }

  private constructor(
    controlPlane: ControlPlane,
    client: KubernetesClient,
    { directory, startProgram }: { directory: string; startProgram: StartProgram },
  ) {
    this.#controlPlane = controlPlane;
    this.#client = client;
    this.#directory = directory;
    this.#startProgram = startProgram;
    this.name = `processes-${client.namespace}`;
  }

  /** What a pod's process has printed. */
  podOutput(pod: string): string[] {
    return withoutTimes(this.#processes.get(pod)?.output ?? []);
  }

  /** The same of every pod that a job has had, in their order. */
  jobOutputs(jobId: string): string[][] {
    const pods = Array.from(this.#processes.values()).filter((pod) => pod.jobId === jobId);
    return pods.map(({ output }) => withoutTimes(output));
  }

  /** Kills a pod's process as the kernel does where its memory is used up. */
  killForMemory(pod: string): void {
    this.#outOfMemory.add(pod);
    this.kill(pod);
  }

  /** Kills a pod's process, if it has one. */
  kill(pod: string): void {
    this.#processes.get(pod)?.program.kill("SIGKILL");
  }

  isRunning(pod: string): boolean {
    return this.#processes.get(pod)?.isRunning ?? false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#heartbeat);
    await this.#pods?.stop();
    for (const { program } of this.#processes.values()) program.kill("SIGKILL");
    this.#server?.closeAllConnections();
    this.#server?.close();
    await this.#client.delete(nodes, this.name, { propagationPolicy: "Background" });
    await this.#client.close();
    // Processes that the killed ones have started may still write to it.
    await rm(this.#directory, { recursive: true, force: true, maxRetries: 20 });
  }

  async #start(): Promise<void> {
    const { folder, address } = this.#controlPlane;
    const [cert, key] = await Promise.all(
      ["crt", "key"].map((end) => readFile(join(folder, `apiserver.${end}`))),
    );
    const port = await findFreePort(address);
    this.#server = createServer(
      { ...(cert && { cert }), ...(key && { key }) },
      (request, answer) => {
        const { pathname, searchParams } = new URL(request.url ?? "", "https://node");
        const [, kind, , pod = ""] = pathname.split("/");
        const output = this.#processes.get(pod)?.output;
        if (this.isOutOfReach) {
          this.refusedReads++;
          return void answer.writeHead(503).end("The node is out of reach");
        }
        if (kind !== "containerLogs" || output === undefined)
          return void answer.writeHead(404).end();
        // Whole seconds, which are in order with lines' times as texts are.
        const since = searchParams.get("sinceTime")?.replace("Z", "") ?? "";
        answer.end(output.filter((line) => line >= since).join(""));
      },
    ).listen(port, address);
    await once(this.#server, "listening");
    const labels = { "kubernetes.io/os": "linux" };
    await this.#client.create(nodes, { metadata: { name: this.name, labels } });
    await this.#beat(port);
    this.#heartbeat = setInterval(
      () => void this.#beat(port).catch(() => "it beats again"),
      heartbeatMs,
    );
    const observePod = (pod: Stored<Pod>) => this.#observePod(pod);
    const fieldSelector = `spec.nodeName=${this.name}`;
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
      addresses: [{ type: "InternalIP", address: this.#controlPlane.address }],
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
      conditions: [{ ...ready, lastHeartbeatTime: new Date().toISOString() }],
    };
    await this.#client.patch(nodes, this.name, { status }, { subresource: "status" });
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
    work().catch(async () => {
      await delay(retryMs);
      this.#done.delete(key);
      if (this.#server?.listening === true) this.#observePod(pod);
    });
  }

  async #run(pod: Stored<Pod>): Promise<void> {
    const { name, uid, labels = {} } = pod.metadata;
    if (pod.status?.phase !== "Pending") return;
    const folder = join(this.#directory, uid);
    await mkdir(folder, { recursive: true });
    const environment = await this.#makeEnvironment(pod, folder);
    // Its end stops what runs then, and nothing later.
    if (this.#server?.listening !== true) return;
    const output: string[] = [];
    const print = (line: string) => void output.push(`${new Date().toISOString()} ${line}\n`);
    const program = this.#startProgram({ environment, folder, print });
    const jobId = labels[resourceLabels.jobId];
    const ended = this.#report(name, program, folder);
    const started = { jobId, program, output, isRunning: true, ended };
    this.#processes.set(name, started);
    void program.closed.then(() => (started.isRunning = false));
    await ended;
  }

  /** Reports that a pod's program runs, and how it ends. */
  async #report(pod: string, { closed }: PodProgram, folder: string): Promise<void> {
    const startedAt = new Date().toISOString();
    await this.#patchStatus(pod, {
      phase: "Running",
      startTime: startedAt,
      containerStatuses: [{ ...container, state: { running: { startedAt } } }],
    });
    const exitCode = await closed;
    const terminated = {
      exitCode,
      reason: this.#endReason(pod, exitCode),
      message: await readFile(join(folder, "message"), "utf8").catch(() => ""),
      startedAt,
      finishedAt: new Date().toISOString(),
    };
    await this.#patchStatus(pod, {
      phase: exitCode === 0 ? "Succeeded" : "Failed",
      containerStatuses: [{ ...container, state: { terminated } }],
    });
  }

  #endReason(pod: string, exitCode: number): string {
    if (this.#outOfMemory.has(pod)) return "OOMKilled";
    return exitCode === 0 ? "Completed" : "Error";
  }

  async #makeEnvironment({ metadata, spec }: Stored<Pod>, folder: string) {
    const { name, uid, namespace = "" } = metadata;
    const tokenFile = join(folder, "token");
    await writeFile(tokenFile, await podToken(this.#controlPlane, { namespace, name, uid }));
    const { env = [] } = spec?.containers[0] ?? {};
    return {
      ...Object.fromEntries(env.map((entry) => [entry.name, entry.value ?? ""])),
      MOS_WORK_DIR: folder,
      TMPDIR: folder,
      MOS_JOB_TOKEN_FILE: tokenFile,
      MOS_TERMINATION_LOG: join(folder, "message"),
    };
  }

  /** Stops a deleted pod within its grace period. */
  async #remove({ metadata }: Stored<Pod>): Promise<void> {
    const { name, uid, deletionGracePeriodSeconds = 0 } = metadata;
    const found = this.#processes.get(name);
    if (found !== undefined && this.isRunning(name)) {
      found.program.kill("SIGTERM");
      const kill = setTimeout(() => this.kill(name), deletionGracePeriodSeconds * 1000);
      await found.ended.finally(() => clearTimeout(kill));
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

function withoutTimes(output: readonly string[]): string[] {
  return output.map((line) => line.slice(line.indexOf(" ") + 1).trimEnd());
}
