import { setTimeout as delay } from "node:timers/promises";
import { recordFinalizer } from "../../src/contract/custom-resources/resource-labels.ts";
import type { KubernetesClient } from "../../src/kubernetes/kubernetes-client.ts";
import type { Stored } from "../../src/kubernetes/resources.ts";
import {
  type CompressionJobObject,
  compressionJobs,
} from "../../src/resources/custom-resources.ts";
import { resolveJobId } from "../../src/resources/job-identity.ts";

/** The Job controller waits longer with each pod of a Job that was lost. */
const patienceMs = 300_000;
const pollMs = 500;

export interface FinishedJob {
  readonly name: string;
  /** In the REST interface. */
  readonly id: string;
}

/** Creates jobs while faults happen, so that at any time there are jobs in every status. */
export class SubmittedJobs {
  readonly #client: KubernetesClient;
  readonly #total: number;
  #submitted = 0;

  constructor(client: KubernetesClient, total: number) {
    this.#client = client;
    this.#total = total;
  }

  get count(): number {
    return this.#submitted;
  }

  /** Creates as large a part of all jobs as of all faults has happened. */
  async submitDue(fraction: number): Promise<void> {
    while (this.#submitted < this.#total && this.#submitted <= fraction * this.#total) {
      await this.#client.create(compressionJobs, makeJobObject(jobName(this.#submitted++)));
    }
  }

  /** The jobs that are Completed and recorded, as soon as all are, or none was for five minutes. */
  async waitForAll(): Promise<FinishedJob[]> {
    let done: FinishedJob[] = [];
    for (let since = performance.now(); performance.now() - since < patienceMs;) {
      const now = await this.#listDone();
      if (now.length > done.length) since = performance.now();
      done = now;
      if (done.length === this.#submitted) return done;
      await delay(pollMs);
    }
    return done;
  }

  async #listDone(): Promise<FinishedJob[]> {
    const pages = await Array.fromAsync(this.#client.list(compressionJobs));
    const done = pages.flatMap(({ items }) => items.filter(isDone));
    return done.map((job) => ({ name: job.metadata.name, id: resolveJobId(job) }));
  }
}

function jobName(index: number): string {
  return `job-${index}`;
}

function makeJobObject(name: string): CompressionJobObject {
  return {
    metadata: { name },
    spec: {
      kind: "compress",
      model: { source: "https://models.example/model.onnx" },
      target: "cpu",
      dryRun: false,
      cancel: false,
      suspend: false,
    },
  };
}

function isDone({ status, metadata }: Stored<CompressionJobObject>): boolean {
  return status?.status === "Completed" && !metadata.finalizers?.includes(recordFinalizer);
}
