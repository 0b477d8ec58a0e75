import type { WorkerEvent } from "../../contract/worker.ts";
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
/** Number of the last lines that are recorded besides events: they say why a worker crashed. */
const maxStrayLines = 200;
/** After so long an unreadable log counts as lost. */
const logReadTimeoutMs = 120_000;

/** Records the events of workers' pods that the workers could not report, from the pods' logs. */
export class PodLogCollector {
  readonly #options: PodLogCollectorOptions;
  /** Time of the first failed read by uid of the pod. */
  readonly #unreadableSince = new Map<string, number>();

  constructor(options: PodLogCollectorOptions) {
    this.#options = options;
  }

  /** Records the rest of the output of an ended pod. Returns false where that has to be retried. */
  async recordEndedPod(pod: ObservedWorkerPod): Promise<boolean> {
    const { attempts } = this.#options.records;
    const before = await attempts.findPodAttempt(pod.jobId, pod.uid);
    if (before?.ended === true || (before === undefined && !pod.hasRun)) return true;
    const attempt = await attempts.ensurePodAttempt(pod.jobId, { podUid: pod.uid, part: pod.part });
    if (attempt === undefined) return true;
    const known = await attempts.findPodAttempt(pod.jobId, pod.uid);
    const lines = hasReportedAll(pod, known?.nextSeq ?? 0)
      ? []
      : await this.#recordRemainingOutput(pod, attempt);
    if (lines === undefined) return false;
    const stray = lines.map((text) => ({ stream: "stderr" as const, text }));
    await attempts.end(pod.jobId, attempt, { error: null, lines: stray });
    return true;
  }

  /** Records the events in a pod's output so far. Returns the last other lines. */
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

  /** Undefined when the log cannot be read at the moment. */
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
      const isDeleted = error.status === 404 || error.status === 400;
      if (!isDeleted && performance.now() - since < logReadTimeoutMs) return undefined;
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

/**
 * Whether the worker did not crash, so that its output is its events, and all of them are recorded.
 */
function hasReportedAll({ terminationMessage }: ObservedWorkerPod, nextSeq: number): boolean {
  if (terminationMessage === undefined) return false;
  const { error, lastSeq } = terminationMessage;
  return error?.code !== "worker_crashed" && nextSeq > lastSeq;
}
