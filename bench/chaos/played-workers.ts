import { setTimeout as delay } from "node:timers/promises";
import { resourceLabels } from "../../src/contract/custom-resources/resource-labels.ts";
import { workerContainer } from "../../src/contract/worker-protocol/messages.ts";
import type { KubernetesClient } from "../../src/kubernetes/kubernetes-client.ts";
import { ignoreNotFound, isConflict } from "../../src/kubernetes/kubernetes-error.ts";
import { type Pod, resources, type Stored } from "../../src/kubernetes/resources.ts";
import type { Cluster } from "../../test/support/cluster/cluster.ts";
import { podToken } from "../../test/support/cluster/pod-token.ts";
import { workerOutput } from "../worker-output.ts";
import { podLines } from "./pod-lines.ts";
import type { PodLog } from "./serve-logs.ts";
import type { SimulatedNode } from "./simulated-node.ts";

interface PlayedWorkersOptions {
  readonly cluster: Cluster;
  readonly client: KubernetesClient;
  readonly nodes: readonly SimulatedNode[];
  /** Of the service, as workers reach it. */
  readonly serviceUrl: string;
}

interface PlayedWorker {
  readonly node: SimulatedNode;
  /** The lines of its log, with their times. */
  readonly printed: string[];
  readonly gone: AbortController;
}

const retryMs = 500;
const maxWorkMs = 10_000;
const requestMs = 5_000;

/**
 * Plays the worker of every pod that starts: it waits for its assignment, reports a part of its
 * events to the service, prints all of them, works for a while and ends with the result.
 */
export class PlayedWorkers {
  readonly #options: PlayedWorkersOptions;
  readonly #workers = new Map<string, PlayedWorker>();
  /** Names of all pods whose worker has printed, also of those that are gone. */
  readonly #printed = new Set<string>();

  constructor(options: PlayedWorkersOptions) {
    this.#options = options;
  }

  observe(pod: Stored<Pod>): void {
    const { metadata, spec, status } = pod;
    const { name } = metadata;
    const node = this.#options.nodes.find((each) => each.name === spec?.nodeName);
    if (status?.phase !== "Running") this.#workers.get(name)?.gone.abort();
    if (node === undefined || status?.phase !== "Running" || this.#workers.has(name)) return;
    const worker = { node, printed: [], gone: new AbortController() };
    this.#workers.set(name, worker);
    this.#work(pod, worker).catch((error: unknown) => this.#failUnlessGone(pod, error));
  }

  remove({ metadata }: Stored<Pod>): void {
    this.#workers.get(metadata.name)?.gone.abort();
    this.#workers.delete(metadata.name);
  }

  readonly findLog = (pod: string): PodLog => {
    const worker = this.#workers.get(pod);
    return worker?.node.isSilent ? "silent" : worker?.printed;
  };

  /** The lines that the worker of a pod has printed: all, or none where it had no assignment. */
  listPrinted(pod: string): string[] {
    return this.#printed.has(pod) ? podLines(pod) : [];
  }

  async #work(pod: Stored<Pod>, { node, printed, gone: { signal } }: PlayedWorker): Promise<void> {
    const { cluster, client } = this.#options;
    const { name, uid, labels = {} } = pod.metadata;
    const token = await podToken(cluster, { namespace: client.namespace, name, uid });
    const path = `/worker/v1/jobs/${labels[resourceLabels.jobId]}`;
    const ask = (place: string, body?: string) => this.#ask(`${path}${place}`, { token, body });
    while (!(await ask(""))) await delay(retryMs, undefined, { signal });
    const output = workerOutput(podLines(name));
    const at = new Date().toISOString();
    const lines = output.map((line) => `${at} ${line}\n`);
    printed.push(...lines.slice(0, -1));
    this.#printed.add(name);
    const reported = output.slice(0, Math.floor(Math.random() * output.length));
    await ask("/events", `{"events": [${reported.join(",")}]}`);
    await delay(Math.random() * maxWorkMs, undefined, { signal });
    await node.awake;
    signal.throwIfAborted();
    printed.push(...lines.slice(-1));
    await this.#end(name, output.length);
  }

  /** Ends a pod with success, unless its node has stopped it. */
  async #end(name: string, lastSeq: number): Promise<void> {
    const { client } = this.#options;
    const pod = await client.get(resources.pods, name);
    if (pod.status?.phase !== "Running") return;
    const { resourceVersion } = pod.metadata;
    const status = endStatus(pod, lastSeq);
    try {
      const options = { subresource: "status", resourceVersion } as const;
      await client.patch(resources.pods, name, { status }, options);
    } catch (error) {
      if (!isConflict(error)) throw error;
      await this.#end(name, lastSeq);
    }
  }

  /** Whether the service has accepted the request. */
  async #ask(path: string, { token, body }: { token: string; body?: string | undefined }) {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const signal = AbortSignal.timeout(requestMs);
    const method = body === undefined ? "GET" : "POST";
    const options = { method, headers, signal, body: body ?? null };
    const answer = await fetch(new URL(path, this.#options.serviceUrl), options).catch(() => null);
    await answer?.body?.cancel();
    return answer?.ok ?? false;
  }

  async #failUnlessGone({ metadata }: Stored<Pod>, error: unknown): Promise<void> {
    const live = await ignoreNotFound(this.#options.client.get(resources.pods, metadata.name));
    if (live?.metadata.uid === metadata.uid && live.status?.phase === "Running") throw error;
  }
}

/** Of a pod whose worker has done its work and reported so many events. */
function endStatus({ status }: Stored<Pod>, lastSeq: number): NonNullable<Pod["status"]> {
  const running = status?.containerStatuses?.find(({ name }) => name === workerContainer);
  const finishedAt = new Date().toISOString();
  const startedAt = running?.state?.running?.startedAt ?? finishedAt;
  const message = JSON.stringify({ outcome: "Completed", lastSeq });
  const terminated = { exitCode: 0, reason: "Completed", message, startedAt, finishedAt };
  const ended = { name: workerContainer, image: "worker", imageID: "", ready: false };
  const containerStatuses = [{ ...ended, restartCount: 0, state: { terminated } }];
  return { phase: "Succeeded", containerStatuses };
}
