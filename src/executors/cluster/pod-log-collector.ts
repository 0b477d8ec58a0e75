import { setBounded } from "../../limits/bounded-map.ts";
import { KeyedSemaphore } from "../../limits/keyed-semaphore.ts";
import { setTimeout as delay } from "node:timers/promises";
import type { ObservedWorkerPod } from "./observed-worker-pod.ts";
import type { LossReason, UnreadLogs } from "./unread-logs.ts";
import type { LogLine } from "../../contract/jobs/log.ts";
import { reportedBlob } from "../../contract/worker-protocol/transfers.ts";
import {
  workerContainer,
  type WorkerEvent,
  workerEvent,
} from "../../contract/worker-protocol/messages.ts";
import type { KubernetesClient } from "../../kubernetes/kubernetes-client.ts";
import { KubernetesError } from "../../kubernetes/kubernetes-error.ts";
import { readPodLog } from "../../kubernetes/pod-log.ts";
import type { Log } from "../../log/json-log.ts";
import { describeDisruption } from "../../resources/disruption.ts";
import { lostLines } from "../../records/jobs/log-records.ts";
import type { Records } from "../../records/open-records.ts";

interface PodLogCollectorOptions {
  readonly records: Records;
  readonly client: KubernetesClient;
  /** Reconciles a job whose log was read. */
  readonly enqueue: (jobId: string) => void;
  readonly unread: UnreadLogs;
  /** Whether a file is stored. */
  readonly isStored: (sha256: string) => Promise<boolean>;
  /** Hashes of the files that the service reported in the status of a pod's job. */
  readonly reportedFiles: (pod: ObservedWorkerPod) => ReadonlySet<string>;
  readonly countLoss: (reason: LossReason) => void;
  readonly log: Log;
}

interface DeletedPod {
  readonly jobId: string;
  readonly attempt: number;
  readonly podUid: string;
}

type EndLine = Pick<LogLine, "stream" | "text">;

const eventsPerWrite = 500;
/** Disrupted pods that are remembered. */
const maxDisruptions = 10_000;
/** Number of the last lines that are recorded besides events: they say why a worker crashed. */
const maxStrayLines = 200;
/** Reads at once, of all nodes and of each. One of a silent node ends after a minute. */
const readLimits = { all: 64, perKey: 4 };

/** Records the events of workers' pods that the workers could not report, from the pods' logs. */
export class PodLogCollector {
  readonly #options: PodLogCollectorOptions;
  /** A silent node delays only the reads from itself. */
  readonly #reads = new KeyedSemaphore(readLimits);
  /** The reads of ended pods, by uid. */
  readonly #reading = new Map<string, { readonly jobId: string; readonly end: Promise<void> }>();
  readonly #silentNodes = new SilentNodes();
  /** Why the cluster ended pods, by uid: deleted ones are soon gone. */
  readonly #disruptions = new Map<string, string>();

  constructor(options: PodLogCollectorOptions) {
    this.#options = options;
  }

  /**
   * Whether everything that an ended pod reported is recorded; otherwise that is begun, and the job
   * is reconciled when it is done.
   */
  async recordEndedPod(pod: ObservedWorkerPod): Promise<boolean> {
    if (this.#reading.has(pod.uid)) return false;
    const isRecorded = await this.#recordWhatIsKnown(pod);
    if (isRecorded) this.#options.unread.delete(pod.uid);
    return isRecorded;
  }

  noteDisruption({ uid, disruption }: ObservedWorkerPod): void {
    if (disruption === undefined) return;
    setBounded(this.#disruptions, uid, describeDisruption(disruption), maxDisruptions);
  }

  /** Why the cluster ended a pod, as a line of its job's log; none where it did not. */
  #disruptionLines(podUid: string): EndLine[] {
    const why = this.#disruptions.get(podUid);
    return why === undefined ? [] : [{ stream: "stderr", text: `(the worker's pod ${why})` }];
  }

  /** Ends the attempt of a pod whose log nobody can read, since it was deleted. */
  async endDeletedPod({ jobId, attempt, podUid }: DeletedPod): Promise<void> {
    const { records, unread, countLoss } = this.#options;
    const why = this.#disruptions.get(podUid) ?? "was deleted";
    const lines = lostLines(`its pod ${why} before it had reported its end`);
    await records.attempts.end(jobId, attempt, { error: null, lines });
    unread.delete(podUid);
    countLoss("pod_deleted");
  }

  /** Leaves the logs to the replica that leads. */
  standBy(): void {
    this.#options.unread.clear();
  }

  /** Begins to read the log where that is not all that the pod reported. */
  async #recordWhatIsKnown(pod: ObservedWorkerPod): Promise<boolean> {
    const { attempts } = this.#options.records;
    const before = await attempts.findPodAttempt(pod.jobId, pod.uid);
    if (before?.ended === true || (before === undefined && !pod.hasRun)) return true;
    const attempt = await attempts.ensurePodAttempt(pod.jobId, { podUid: pod.uid, part: pod.part });
    if (attempt === undefined) return true;
    const known = await attempts.findPodAttempt(pod.jobId, pod.uid);
    if (hasReportedAll(pod, known?.nextSeq ?? 0)) {
      const lines = this.#disruptionLines(pod.uid);
      await attempts.end(pod.jobId, attempt, { error: null, lines });
      return true;
    }
    this.#startReading(pod, attempt);
    return false;
  }

  isReading(podUid: string): boolean {
    return this.#reading.has(podUid);
  }

  /** Waits for the reads of a job's ended pods, for a limited time. */
  async finishReads(jobId: string, withinMs: number): Promise<void> {
    const reads = [...this.#reading.values()].filter((read) => read.jobId === jobId);
    if (reads.length === 0) return;
    const limit = new AbortController();
    const late = delay(withinMs, undefined, { signal: limit.signal }).catch(() => undefined);
    await Promise.race([Promise.all(reads.map(({ end }) => end)), late]);
    limit.abort();
  }

  /** Records the events in a pod's output so far. Returns the last other lines. */
  async recordOutput(pod: ObservedWorkerPod, attempt: number): Promise<string[]> {
    const { name, jobId, namespace } = pod;
    const { records } = this.#options;
    const client = this.#options.client.inNamespace(namespace);
    const stray: string[] = [];
    let events: WorkerEvent[] = [];
    const flush = async () => {
      const recorded = await this.#toRecord(pod, events);
      if (recorded.length > 0) await records.workers.recordFinalEvents(jobId, attempt, recorded);
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

  /**
   * The events as they are recorded after the worker: files that the job has not stored are left
   * out, since its readers could download them, unless the service itself reported them in the
   * resource.
   */
  async #toRecord(pod: ObservedWorkerPod, events: readonly WorkerEvent[]): Promise<WorkerEvent[]> {
    const { jobBlobs } = this.#options.records;
    const reported = this.#options.reportedFiles(pod);
    const recorded: WorkerEvent[] = [];
    for (const event of events) {
      const blob = reportedBlob(event);
      const isForeign =
        blob !== undefined &&
        !reported.has(blob.sha256) &&
        !(await jobBlobs.mayHave(pod.jobId, blob));
      recorded.push(isForeign ? leftOut(event) : await this.#withMissing(event));
    }
    return recorded;
  }

  async #withMissing(event: WorkerEvent): Promise<WorkerEvent> {
    if (event.type !== "artifact") return event;
    if (await this.#options.isStored(event.artifact.sha256)) return event;
    return { ...event, artifact: { ...event.artifact, missing: true } };
  }

  #startReading(pod: ObservedWorkerPod, attempt: number): void {
    const { log, enqueue, unread } = this.#options;
    const { uid, jobId } = pod;
    unread.add(uid);
    const end = this.#recordEnd(pod, attempt)
      .catch((error: unknown) => log("error", "Cannot record a pod's log", { jobId, error }))
      .finally(() => {
        this.#reading.delete(uid);
        enqueue(jobId);
      });
    this.#reading.set(uid, { jobId, end });
  }

  async #recordEnd(pod: ObservedWorkerPod, attempt: number): Promise<void> {
    using _ = await this.#reads.acquire(pod.node);
    const lines = await this.#readEndLines(pod, attempt);
    if (lines === undefined) return;
    await this.#options.records.attempts.end(pod.jobId, attempt, {
      error: null,
      lines: [...lines, ...this.#disruptionLines(pod.uid)],
    });
    this.#options.unread.delete(pod.uid);
  }

  /** Undefined when the log cannot be read at the moment. */
  async #readEndLines(pod: ObservedWorkerPod, attempt: number): Promise<EndLine[] | undefined> {
    try {
      const stray = await this.recordOutput(pod, attempt);
      this.#silentNodes.answered(pod.node);
      return stray.map((text) => ({ stream: "stderr", text }));
    } catch (error) {
      if (!(error instanceof KubernetesError)) throw error;
      const isGone = error.status === 404 || error.status === 400;
      if (!isGone && !this.#silentNodes.failed(pod.node)) return undefined;
      const fields = { pod: pod.name, job: pod.jobId, error };
      this.#options.log("error", "The log of a worker's pod is lost", fields);
      this.#options.countLoss(isGone ? "log_gone" : "node_silent");
      return lostLines(isGone ? "the log of its pod is gone" : `the node "${pod.node}" is silent`);
    }
  }
}

function leftOut({ seq, at, type }: WorkerEvent): WorkerEvent {
  const text = `(a file that the worker reported, as "${type}", is another job's and is left out)`;
  return { seq, at, type: "log", stream: "stderr", text };
}

/**
 * Whether the worker did not crash, so that its output is its events, and all of them are recorded.
 */
function hasReportedAll({ terminationMessage }: ObservedWorkerPod, nextSeq: number): boolean {
  if (terminationMessage === undefined) return false;
  const { error, lastSeq } = terminationMessage;
  return error?.code !== "worker_crashed" && nextSeq > lastSeq;
}

/** A line of a worker's output: an event, or other text, for instance of a crash. */
type OutputLine = { readonly event: WorkerEvent } | { readonly text: string };

/** The output of a pod's worker until now. Its last event is the result. */
async function* readWorkerLog(client: KubernetesClient, pod: string): AsyncGenerator<OutputLine> {
  const log = { pod, container: workerContainer };
  let hasResult = false;
  for await (const { text } of readPodLog(client, log, () => hasResult)) {
    const line = parseOutputLine(text);
    hasResult ||= "event" in line && line.event.type === "result";
    yield line;
  }
}

function parseOutputLine(text: string): OutputLine {
  try {
    return { event: workerEvent.parse(JSON.parse(text)) };
  } catch {
    return { text };
  }
}

/** The logs of a node that cannot be read for so long count as lost: it restarts within that. */
const lostAfterMs = 600_000;
/** Failures of a node that are further apart are not in a row: a read fails within a minute. */
const failureGapMs = 180_000;

/** Nodes whose last read failed. */
class SilentNodes {
  /** When the first failure in a row was, and the last. */
  readonly #failures = new Map<string, { readonly since: number; readonly last: number }>();

  answered(node: string): void {
    this.#failures.delete(node);
  }

  /** Counts a failure; returns whether there were no others for so long that the node is lost. */
  failed(node: string): boolean {
    const now = performance.now();
    const known = this.#failures.get(node);
    const isInRow = known !== undefined && now - known.last < failureGapMs;
    const since = isInRow ? known.since : now;
    this.#failures.set(node, { since, last: now });
    return now - since >= lostAfterMs;
  }
}
