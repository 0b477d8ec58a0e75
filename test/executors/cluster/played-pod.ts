import { createHash } from "node:crypto";
import { resourceLabels } from "../../../src/contract/custom-resources/resource-labels.ts";
import {
  type TerminationMessage,
  type WorkerEvent,
  workerEventsAnswer,
} from "../../../src/contract/worker-protocol/messages.ts";
import { compressionJobs } from "../../../src/resources/custom-resources.ts";
import { resolveJobId } from "../../../src/resources/job-identity.ts";
import { isAlreadyExists } from "../../../src/kubernetes/kubernetes-error.ts";
import { resources } from "../../../src/kubernetes/resources.ts";
import { podToken, workerServiceAccount } from "../../support/cluster/pod-token.ts";
import { serviceAccounts } from "../../support/cluster/test-resources.ts";
import { type ClusterService } from "./cluster-service.ts";
import { until } from "../../support/until.ts";

type WithoutNumber<Event> = Event extends unknown ? Omit<Event, "seq" | "at"> : never;
export type UnnumberedEvent = WithoutNumber<WorkerEvent>;

export interface PlayedPod {
  readonly name: string;
  readonly uid: string;
  readonly token: string;
  /** Reports the next events as the pod's worker. */
  report(...events: readonly UnnumberedEvent[]): Promise<{ nextSeq: number; cancelled: boolean }>;
  /** Stores a file as the pod's worker. */
  store(content: string): Promise<{ sha256: string; bytes: number }>;
  /** Sends something else to the service as the pod's worker. */
  ask(path: string, init?: RequestInit, token?: string): Promise<Response>;
  /** The pod's container ends. */
  end(exitCode: number, message?: TerminationMessage): Promise<void>;
}

interface PodOptions {
  readonly name?: string;
  /** Node of the pod; by default it has none. */
  readonly node?: string;
  /** The Job that is said to have created it; by default one that the operator would have made. */
  readonly workerJob?: { readonly name: string; readonly uid: string };
  /** The resource that the Job is said to belong to; by default the job's own. */
  readonly owner?: { readonly name: string; readonly uid: string };
  /** Number of the first event less one. */
  readonly reportedEvents?: number;
}

/** A pod that the operator would have made for a job; the test plays its worker, with the pod's real token. */
export async function playPod(
  service: ClusterService,
  jobId: string,
  options: PodOptions = {},
): Promise<PlayedPod> {
  const { api, cluster, namespace } = service;
  const { name = `${jobId}-pod`, node } = options;
  const account = { metadata: { name: workerServiceAccount } };
  await api.create(serviceAccounts, account).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
  });
  const labels = { [resourceLabels.jobId]: jobId };
  const workerJob =
    options.workerJob ?? (await makeWorkerJob(service, jobId, { name, owner: options.owner }));
  const { metadata } = await until("the pod is admitted", () =>
    api
      .create(resources.pods, {
        metadata: {
          name,
          labels,
          ownerReferences: [
            { apiVersion: "batch/v1", kind: "Job", controller: true, ...workerJob },
          ],
        },
        spec: {
          serviceAccountName: workerServiceAccount,
          ...(node !== undefined && { nodeName: node }),
          restartPolicy: "Never",
          containers: [{ name: "worker", image: "none" }],
        },
      })
      .catch(() => undefined),
  );
  const token = await podToken(cluster, { namespace, name, uid: metadata.uid });
  let seq = options.reportedEvents ?? 0;
  const ask: PlayedPod["ask"] = (path, init = {}, bearer = token) => {
    const url = new URL(`/worker/v1/jobs/${jobId}${path}`, service.baseUrl);
    const headers = { authorization: `Bearer ${bearer}`, "content-type": "application/json" };
    return fetch(url, { ...init, headers });
  };
  return {
    name,
    uid: metadata.uid,
    token,
    ask,
    async store(content) {
      const sha256 = createHash("sha256").update(content).digest("hex");
      await until("the service takes the file", async () => {
        const reply = await ask(`/blobs/${sha256}`, { method: "PUT", body: content });
        return reply.ok;
      });
      return { sha256, bytes: Buffer.byteLength(content) };
    },
    async report(...events) {
      const numbered = events.map((event) => ({
        ...event,
        seq: ++seq,
        at: new Date().toISOString(),
      }));
      const body = JSON.stringify({ events: numbered });
      const answer = await until("the service takes the events", async () => {
        const reply = await ask("/events", { method: "POST", body });
        return reply.status === 503 ? undefined : reply;
      });
      return workerEventsAnswer.parse(await answer.json());
    },
    async end(exitCode, message) {
      const at = new Date().toISOString();
      const terminated = {
        exitCode,
        startedAt: at,
        finishedAt: at,
        ...(message && { message: JSON.stringify(message) }),
      };
      const container = {
        name: "worker",
        image: "none",
        imageID: "",
        ready: false,
        restartCount: 0,
      };
      await api.patch(
        resources.pods,
        name,
        {
          status: {
            phase: exitCode === 0 ? "Succeeded" : "Failed",
            containerStatuses: [{ ...container, state: { terminated } }],
          },
        },
        { subresource: "status" },
      );
    },
  };
}

/** The worker Job of a pod, which the Job controller leaves alone. */
async function makeWorkerJob(
  { api }: ClusterService,
  jobId: string,
  { name, owner }: { name: string; owner: PodOptions["owner"] },
) {
  const { name: ownerName, uid } = owner ?? (await findJobResource(api, jobId)).metadata;
  const { apiVersion, kind } = compressionJobs;
  const reference = { apiVersion, kind, name: ownerName, uid, controller: true };
  const { metadata } = await api.create(resources.jobs, {
    metadata: { name, ownerReferences: [reference] },
    spec: {
      managedBy: "test.modeloptimization.dev/played",
      template: {
        spec: { restartPolicy: "Never", containers: [{ name: "worker", image: "none" }] },
      },
    },
  });
  return { name, uid: metadata.uid };
}

function findJobResource(api: ClusterService["api"], jobId: string) {
  return until("the job is a resource", async () => {
    const [page] = await Array.fromAsync(api.list(compressionJobs));
    return page?.items.find((resource) => resolveJobId(resource) === jobId);
  });
}

export function logged(text: string): UnnumberedEvent {
  return { type: "log", stream: "stdout", text };
}
