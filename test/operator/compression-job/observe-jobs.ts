import { apiVersion } from "../../../src/contract/custom-resources/api-group.ts";
import type {
  CompressionJob,
  CompressionJobSpec,
  JobReport,
} from "../../../src/contract/custom-resources/compression-job.ts";
import type { JobStatus } from "../../../src/contract/jobs/status.ts";
import { toCompressionJob } from "../../../operator/controllers/compression-job/observe/observe-compression-job.ts";
import { connectCluster } from "../../../src/kubernetes/connect-cluster.ts";
import {
  type CompressionJobObject,
  compressionJobs,
} from "../../../src/resources/custom-resources.ts";
import type { KubernetesClient } from "../../../src/kubernetes/kubernetes-client.ts";
import { createReflector, type Reflector } from "../../../src/kubernetes/reflector.ts";
import {
  type KubernetesJob,
  type KubernetesObject,
  type Pod,
  resources,
  type ResourceType,
  type Stored,
} from "../../../src/kubernetes/resources.ts";
import type { Cluster } from "../../support/cluster/cluster.ts";
import { ChangeSignal } from "../../support/until.ts";

interface JobRequest {
  readonly name: string;
  readonly spec?: Partial<CompressionJobSpec>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly finalizers?: string[];
}

/** A namespace as its user sees it: creates CompressionJobs, and waits for their states. */
export interface ObservedJobs extends AsyncDisposable {
  readonly client: KubernetesClient;
  /** By their names. */
  readonly jobs: Pick<Reflector<KubernetesJob>, "get" | "size" | "values">;
  readonly pods: Reflector<Pod>;
  create(request: JobRequest): Promise<CompressionJob>;
  /** Changes the spec. */
  change(name: string, spec: Partial<CompressionJobSpec>): Promise<void>;
  /** Reports these statuses of the job, as the service does. */
  report(name: string, ...statuses: readonly JobStatus[]): Promise<void>;
  /** Says that all is recorded, as the service does. */
  record(name: string): Promise<void>;
  /** Resolves as soon as a state of the job, also an earlier one, fits. */
  until(name: string, condition: (job: CompressionJob) => boolean): Promise<CompressionJob>;
  /** Resolves as soon as the condition is true. */
  untilTrue(condition: () => boolean): Promise<void>;
  /** Every state in which a job was seen. */
  history(name: string): readonly CompressionJob[];
  /** How many Jobs of this name there were, one after the other. */
  jobsSeen(name: string): number;
}

export async function observeJobs(
  { kubeconfig }: Pick<Cluster, "kubeconfig">,
  namespace: string,
): Promise<ObservedJobs> {
  const client = await connectCluster({ kubeconfig }, { namespace });
  const histories = new Map<string, CompressionJob[]>();
  const jobUids = new Map<string, Set<string>>();
  const changed = new ChangeSignal();
  const recordState = (object: Stored<CompressionJobObject>) => {
    const job = toCompressionJob(object);
    histories.set(job.metadata.name, [...(histories.get(job.metadata.name) ?? []), job]);
    changed.notify();
  };
  const reflect = <T extends KubernetesObject>(
    type: ResourceType<T>,
    onChange: (object: Stored<T>) => void,
  ) =>
    createReflector({
      client,
      type,
      onAdded: onChange,
      onUpdated: onChange,
      onDeleted: changed.notify,
      onError: () => {},
    });
  const seen = reflect(compressionJobs, recordState);
  const jobs = reflect(resources.jobs, (job) => {
    const uids = jobUids.get(job.metadata.name) ?? new Set();
    jobUids.set(job.metadata.name, uids.add(job.metadata.uid));
    changed.notify();
  });
  const pods = reflect(resources.pods, changed.notify);
  await Promise.all([seen.synced, jobs.synced, pods.synced]);
  const history = (name: string) => histories.get(name) ?? [];
  const untilTrue = async (condition: () => boolean) => {
    await changed.until(String(condition), condition);
  };
  const patchReport = async (name: string, report: JobReport) => {
    await client.patch<CompressionJobObject>(
      compressionJobs,
      name,
      { status: { report } },
      { subresource: "status" },
    );
  };
  return {
    async [Symbol.asyncDispose]() {
      await Promise.all([seen.stop(), jobs.stop(), pods.stop()]);
      await client.close();
    },
    client,
    jobs: {
      get: (name) => jobs.get(`${namespace}/${name}`),
      get size() {
        return jobs.size;
      },
      values: () => jobs.values(),
    },
    pods,
    history,
    jobsSeen: (name) => jobUids.get(name)?.size ?? 0,
    untilTrue,
    async until(name, condition) {
      const what = `a state of "${name}" fits ${String(condition)}`;
      try {
        return await changed.until(what, () => history(name).find(condition));
      } catch (cause) {
        const own = [...pods.values()].filter(({ metadata }) => metadata.name.startsWith(name));
        const last = {
          job: history(name).at(-1),
          work: jobs.get(`${namespace}/${name}-work`),
          pods: own,
        };
        throw new Error(`${name} is ${JSON.stringify(last)}`, { cause });
      }
    },
    async create({ name, spec, labels = {}, finalizers = [] }) {
      const { kind } = compressionJobs;
      const model = { source: "https://models.test/voices.onnx" };
      const defaultSpec = {
        kind: "compress",
        dryRun: false,
        cancel: false,
        suspend: false,
        target: "cpu",
        model,
      } as const;
      const metadata = { name, labels, finalizers };
      return toCompressionJob(
        await client.create(compressionJobs, {
          apiVersion,
          kind,
          metadata,
          spec: { ...defaultSpec, ...spec },
        }),
      );
    },
    async change(name, spec) {
      await client.patch<CompressionJobObject>(compressionJobs, name, { spec });
    },
    report(name, ...statuses) {
      const at = new Date().toISOString();
      const transitions = statuses.map((status) => ({ status, at }));
      return patchReport(name, { startedAt: at, transitions });
    },
    record: (name) => patchReport(name, { recorded: true }),
  };
}
