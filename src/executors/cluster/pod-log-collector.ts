import type { TerminationMessage, WorkerEvent } from "../../contract/worker.ts";
import type { KubernetesClient } from "../../kubernetes/kubernetes-client.ts";
import { KubernetesError } from "../../kubernetes/kubernetes-error.ts";
import type { Records } from "../../records/open-records.ts";
import type { Log } from "../../log/json-log.ts";
import { readWorkerLog } from "./read-worker-log.ts";
import type { ObservedWorkerPod } from "./observed-worker-pod.ts";

interface PodLogCollectorOptions {
  readonly records: Records;
  readonly client: KubernetesClient;
  readonly log: Log;
}

const eventsPerWrite = 500;
/** Lines that a worker printed besides its events, of which the last are kept: why it crashed stands there. */
const maxStrayLines = 200;
/** A log that cannot be read for so long is given up. */
const logReadTimeoutMs = 120_000;

/** Takes from the pods of workers what these could not tell, before the pods are gone. */
export class PodLogCollector {
  readonly #options: PodLogCollectorOptions;
  /** Pods whose log cannot be read, with when that was tried first. */
  readonly #unreadableSince = new Map<string, number>();

  constructor(options: PodLogCollectorOptions) {
    this.#options = options;
  }

  /** Records the rest of what a worker said whose pod has ended. False where that has to be tried again. */
  async recordEndedPod(pod: ObservedWorkerPod): Promise<boolean> {
    const { attempts } = this.#options.records;
    const before = await attempts.findPodAttempt(pod.jobId, pod.uid);
    if (before?.ended === true || (before === undefined && !pod.hasRun)) return true;
    const attempt = await attempts.ensurePodAttempt(pod.jobId, { podUid: pod.uid, part: pod.part });
    if (attempt === undefined) return true;
    const known = await attempts.findPodAttempt(pod.jobId, pod.uid);
    const isFullyReported =
      known !== undefined &&
      hasExitedCleanly(pod) &&
      known.nextSeq > pod.terminationMessage.lastSeq;
    const lines = isFullyReported ? [] : await this.#recordRemainingOutput(pod, attempt);
    if (lines === undefined) return false;
    await attempts.end(pod.jobId, attempt, {
      error: null,
      lines: lines.map((text) => ({ stream: "stderr" as const, text })),
    });
    return true;
  }

  /** Records what a pod's worker has said until now; gives what else stands in its output. */
  async recordOutput({ name, jobId }: ObservedWorkerPod, attempt: number): Promise<string[]> {
    const { records, client } = this.#options;
    const stray: string[] = [];
    let events: WorkerEvent[] = [];
    const flush = async () => {
      if (events.length > 0) await records.workers.recordFinalEvents(jobId, attempt, events);
      events = [];
    };
    for await (const line of readWorkerLog(client, name)) {
      if ("event" in line) events.push(line.event);
      else if (stray.push(line.text) > maxStrayLines) stray.shift();
      if (events.length === eventsPerWrite) await flush();
    }
    await flush();
    return stray;
  }

  /** Undefined where the log cannot be read at the moment. */
  async #recordRemainingOutput(
    pod: ObservedWorkerPod,
    attempt: number,
  ): Promise<string[] | undefined> {
    try {
      const stray = await this.recordOutput(pod, attempt);
      this.#unreadableSince.delete(pod.uid);
      return stray;
    } catch (error) {
      if (!(error instanceof KubernetesError)) throw error;
      const since = this.#unreadableSince.get(pod.uid) ?? performance.now();
      this.#unreadableSince.set(pod.uid, since);
      const isGone = error.status === 404 || error.status === 400;
      if (!isGone && performance.now() - since < logReadTimeoutMs) return undefined;
      this.#unreadableSince.delete(pod.uid);
      this.#options.log("error", "The log of a worker's pod is lost", {
        pod: pod.name,
        job: pod.jobId,
        error,
      });
      return [];
    }
  }
}

/** Whether all that the worker printed are events, as many as it said last. */
function hasExitedCleanly(
  pod: ObservedWorkerPod,
): pod is ObservedWorkerPod & { readonly terminationMessage: TerminationMessage } {
  return (
    pod.terminationMessage !== undefined && pod.terminationMessage.error?.code !== "worker_crashed"
  );
}
