import * as core from "@actions/core";
import type { Client } from "../client/create-client.ts";
import { ProblemError } from "../client/problem-error.ts";
import type { Batch, BatchRequest } from "../contract/batch.ts";
import { hasFailedGate } from "../contract/gate.ts";
import type { Job } from "../contract/job.ts";
import type { ModelReference } from "../contract/model.ts";
import type { Revision } from "../contract/revision.ts";
import type { BatchPlan } from "./plan-batch.ts";
import { listJobs } from "./list-jobs.ts";
import { digest, type StepIdentity } from "./step-identity.ts";

/** A job of the step: one model for one target. */
export interface StepJob {
  readonly id: string;
  readonly model: string;
  readonly target: string;
  /** The job itself where an earlier attempt of the run completed it. */
  readonly former?: Job;
}

export interface Submission {
  readonly batches: readonly Batch[];
  /** In the order of models × targets. */
  readonly jobs: readonly StepJob[];
}

interface StepRequest {
  readonly plan: BatchPlan;
  /** The plan's models, as the service has them. */
  readonly models: readonly ModelReference[];
  readonly identity: StepIdentity;
  readonly attempt: number;
  readonly revision: Revision | undefined;
  /** Given where the service reports instead of the step. */
  readonly report: BatchRequest["report"];
}

/**
 * Submits what the step asks for. Where the run is repeated, jobs that an earlier attempt completed, with their gates
 * passed, count for this one, and only the others are submitted.
 */
export async function submitBatches(client: Client, request: StepRequest): Promise<Submission> {
  const { plan, models, identity, attempt, revision, report } = request;
  const { labels, runLabels } = identity;
  const contentLabel = { "github-request": digest(plan.fields) };
  // The service reports on one whole batch.
  const isAlone = attempt === 1 || report !== undefined;
  const former = isAlone ? [] : await listCompletedJobs(client, { ...runLabels, ...contentLabel });
  const pairs = models.flatMap((model) =>
    plan.targets.map((target) => ({
      model,
      target,
      former: former.find((job) => isJobFor(job, model, target)),
    })),
  );
  const open = pairs.filter((pair) => pair.former === undefined);
  core.saveState("submitted", "true");
  const batches: Batch[] = [];
  for (const group of groupByTargets(open, models)) {
    const body = {
      name: identity.checkName,
      ...plan.fields,
      ...group,
      ...(revision && { revision }),
      ...(report && { report }),
      labels: { ...plan.fields.labels, ...labels, ...contentLabel },
    };
    batches.push(await submitWithFallback(client, body));
    core.saveState("batches", batches.map(({ id }) => id).join(" "));
  }
  const made = batches.flatMap((batch) => batch.jobs);
  const jobs = pairs.flatMap(({ model, target, former: done }): StepJob[] => {
    const name = model.name ?? "";
    if (done) return [{ id: done.id, model: name, target, former: done }];
    const job = made.find((one) => one.model === name && one.target === target);
    return job ? [{ id: job.id, model: name, target }] : [];
  });
  return { batches, jobs };
}

async function submitWithFallback(client: Client, body: BatchRequest): Promise<Batch> {
  const batch = await submitIdempotently(client, body).catch(async (error: unknown) => {
    const isRefused = error instanceof ProblemError && error.problem.code === "missing_scope";
    if (!isRefused || !body.revision?.recordBaseline) throw error;
    core.notice(
      "The results are not recorded as a baseline: the token lacks the scope baselines:write",
    );
    return submitIdempotently(client, {
      ...body,
      revision: { ...body.revision, recordBaseline: false },
    });
  });
  core.info(`Batch ${batch.id}: ${batch.jobs.length} jobs`);
  return batch;
}

/** A repeated request does not make a second batch: all that tells this one from others is in its body. */
async function submitIdempotently(client: Client, body: BatchRequest): Promise<Batch> {
  return client.call("submitBatch", { headers: { "idempotency-key": digest(body) }, body });
}

async function listCompletedJobs(
  client: Client,
  labels: Readonly<Record<string, string>>,
): Promise<Job[]> {
  const label = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  const jobs = await listJobs(client, { label, status: ["Completed"] });
  return jobs.filter(({ gates }) => !hasFailedGate(gates));
}

function isJobFor(job: Job, model: ModelReference, target: string): boolean {
  // What lies elsewhere may have changed since.
  if (!model.source.startsWith("upload:") && model.sha256 === undefined) return false;
  const isSame = job.model.source === model.source && job.model.sha256 === model.sha256;
  return isSame && job.model.name === model.name && job.target === target;
}

/** A batch has each of its models for each of its targets, so that models with the same targets left share one. */
function groupByTargets(
  open: readonly { readonly model: ModelReference; readonly target: string }[],
  models: readonly ModelReference[],
): Pick<BatchRequest, "models" | "targets">[] {
  const left = models.map((model) => ({
    model,
    targets: open.filter((pair) => pair.model === model).map(({ target }) => target),
  }));
  const groups = Map.groupBy(left, ({ targets }) => targets.join(" "));
  groups.delete("");
  return [...groups.values()].map((group) => ({
    models: group.map(({ model }) => model),
    targets: group[0]?.targets ?? [],
  }));
}
