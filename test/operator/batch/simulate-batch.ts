import type { CompressionJobSpec } from "../../../src/contract/custom-resources/compression-job.ts";
import {
  type BatchSpec,
  jobStateCodes,
} from "../../../src/contract/custom-resources/batch-resource.ts";
import { batchChildName, parseBatchChildName } from "../../../src/contract/id.ts";
import { isTerminal, type JobStatus, transitionTable } from "../../../src/contract/jobs/status.ts";
import {
  childCompressionJob,
  batchJobCount,
} from "../../../src/resources/child-compression-job.ts";
import type { ObservedBatchState } from "../../../operator/controllers/batch/observed-batch-state.ts";
import { decideBatch } from "../../../operator/controllers/batch/decide-batch.ts";
import { recordedJobState } from "../../../operator/controllers/batch/job-states.ts";
import type { BatchObject, CompressionJobObject } from "../../../src/resources/custom-resources.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";

type Child = Stored<CompressionJobObject>;

/** What may happen to a batch and around it; `job` is a number of a job. */
export type Happening =
  | {
      readonly type: "reconcile";
      /** Writes after which the operator is killed. */ readonly writes: number;
    }
  | { readonly type: "observe"; readonly job: number }
  | { readonly type: "advance"; readonly job: number; readonly choice: number }
  | { readonly type: "delete"; readonly job: number }
  | { readonly type: "occupy"; readonly job: number }
  | { readonly type: "cancel" }
  | { readonly type: "suspend"; readonly suspend: boolean }
  | { readonly type: "limit"; readonly parallelism: number };

/** A batch, its CompressionJobs and the operator's cache, which has the operator's own writes. */
export class SimulatedBatch {
  batch: Stored<BatchObject>;
  readonly children = new Map<number, Child>();
  readonly nameConflicts = new Map<number, Child>();
  /** How many times each job was made. */
  readonly made = new Map<number, number>();
  readonly #cached = new Map<number, Child>();
  #cachedBatch: Stored<BatchObject>;
  #minutes = 0;

  constructor(batch: Stored<BatchObject>) {
    this.batch = batch;
    this.#cachedBatch = batch;
  }

  /** What the operator observes. */
  observedState(): ObservedBatchState {
    const batch = this.#cachedBatch;
    const children = new Map(this.#cached);
    const jobs = Array.from({ length: batchJobCount(batch) }, (_, job) => job);
    const deleted = jobs.filter(
      (job) =>
        recordedJobState(batch, job) === jobStateCodes.created &&
        !children.has(job) &&
        !this.children.has(job),
    );
    return {
      batch,
      children,
      deleted: new Set(deleted),
      nameConflicts: this.nameConflicts,
      now: new Date(Date.UTC(2026, 2, 1, 0, this.#minutes++)),
    };
  }

  apply(happening: Happening): void {
    switch (happening.type) {
      case "reconcile":
        return this.#reconcile(happening.writes);
      case "observe":
        return this.syncCache(happening.job);
      case "advance":
        return this.#advance(happening.job, happening.choice);
      case "delete":
        this.children.delete(happening.job);
        return;
      case "occupy":
        if (!this.children.has(happening.job))
          this.nameConflicts.set(happening.job, this.#stored(happening.job, "other"));
        return;
      case "cancel":
        return this.#changeSpec({ cancel: true });
      case "suspend":
        return this.#changeSpec({ suspend: happening.suspend });
      case "limit":
        return this.#changeSpec({ parallelism: happening.parallelism });
    }
  }

  /** The cache observes the batch and a job. */
  syncCache(job: number): void {
    this.#cachedBatch = this.batch;
    const child = this.children.get(job);
    if (child === undefined) this.#cached.delete(job);
    else this.#cached.set(job, child);
  }

  /** Changes the spec of a job's resource, by whomever. */
  change(job: number, spec: Partial<CompressionJobSpec>): void {
    const child = this.children.get(job);
    if (child === undefined) return;
    const changed = { ...child, spec: { ...child.spec, ...spec } };
    this.children.set(job, changed);
    this.#cached.set(job, changed);
  }

  #reconcile(writes: number): void {
    const observed = this.observedState();
    const { create, childPatches, status } = decideBatch(observed);
    const applyStatus = () => {
      this.#write({ ...this.batch, status });
      this.#cachedBatch = this.batch;
    };
    const all = [
      applyStatus,
      ...create.map((job) => () => this.#make(job)),
      ...childPatches.map(
        ({ child, spec }) =>
          () =>
            this.change(jobIndex(child), spec),
      ),
    ];
    // A conflict: the batch has changed since the cache observed it.
    const conflict = observed.batch !== this.batch;
    for (const write of all.slice(0, conflict ? 0 : writes)) write();
  }

  #make(job: number): void {
    if (this.children.has(job) || this.nameConflicts.has(job)) return;
    this.made.set(job, (this.made.get(job) ?? 0) + 1);
    const child = this.#stored(job, this.batch.metadata.uid);
    this.children.set(job, child);
    this.#cached.set(job, child);
  }

  #advance(job: number, choice: number): void {
    const child = this.children.get(job);
    if (child === undefined || (child.spec.suspend && !child.spec.cancel)) return;
    const { status = "Pending" } = child.status ?? {};
    const next = transitionTable.compress[status].filter(
      (to) => child.spec.cancel || to !== "Cancelling",
    );
    if (next.length > 0)
      this.children.set(job, withStatus(child, next[choice % next.length] ?? status));
  }

  #changeSpec(fields: Partial<BatchSpec>): void {
    this.#write({ ...this.batch, spec: { ...this.batch.spec, ...fields } });
  }

  #write(batch: Stored<BatchObject>): void {
    this.batch = batch;
  }

  #stored(job: number, owner: string): Child {
    const { metadata, ...child } = childCompressionJob(this.batch, job);
    const name = batchChildName(this.batch.metadata.name, job);
    const stored = {
      name,
      uid: `${owner}-${job}`,
      resourceVersion: "1",
      creationTimestamp: "2026-03-01T00:00:00Z",
    };
    const { ownerReferences = [], ...meta } = metadata ?? {};
    const references = owner === "other" ? [] : ownerReferences;
    return withStatus(
      { ...child, metadata: { ...meta, ...stored, ownerReferences: references } },
      "Pending",
    );
  }
}

function withStatus(child: Child, status: JobStatus): Child {
  const gate = {
    gate: "minSqnrDb",
    limit: 1,
    actual: 0,
    level: "fail",
    passed: false,
  } as const;
  const failed = { error: { code: "model_invalid", message: "No" } } as const;
  return {
    ...child,
    status: {
      status,
      ...(status === "Failed" && failed),
      ...(status === "Completed" &&
        child.metadata.name.endsWith("1") && { report: { gates: [gate] } }),
    },
  };
}

function jobIndex({ metadata: { name } }: Child): number {
  const { index } = parseBatchChildName(name) ?? {};
  if (index === undefined) throw new RangeError(`${name} is not the name of a batch's child`);
  return index;
}

/** Whether a CompressionJob is still at work or waits. */
export function isUnfinished({ status }: Child): boolean {
  return status === undefined || !isTerminal(status.status);
}
