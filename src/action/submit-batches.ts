import * as core from "@actions/core";
import type { ServiceClient } from "./service-client.ts";
import { type Batch, type BatchRequest, groupByTargets } from "../contract/jobs/batch.ts";
import type { Job } from "../contract/jobs/job.ts";
import type { ModelReference } from "../contract/models/model.ts";
import type { Revision } from "../contract/revision.ts";
import { findFormerJob, listFormerJobs } from "./former-jobs.ts";
import type { BatchPlan } from "./plan-batch.ts";
import { digest, type StepIdentity } from "./step-identity.ts";
import { submitPlannedBatch } from "./submit-planned-batch.ts";

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
  /** For the service to write the check runs instead of the step. */
  readonly report: BatchRequest["report"];
}

interface StepPair {
  readonly model: ModelReference;
  readonly target: string;
  readonly former: Job | undefined;
}

/**
 * Submits the jobs of the step, except those that an earlier attempt of the run completed with all
 * gates passed.
 */
export async function submitBatches(
  client: ServiceClient,
  request: StepRequest,
): Promise<Submission> {
  const { plan, models, identity } = request;
  const contentLabel = { "github-request": digest(plan.fields) };
  const former = await listReusableJobs(client, request, contentLabel);
  const pairs = models.flatMap((model) =>
    plan.targets.map((target) => ({ model, target, former: findFormerJob(former, model, target) })),
  );
  core.saveState("submitted", "true");
  const batches: Batch[] = [];
  for (const group of groupByTargets(pairs.filter((pair) => pair.former === undefined))) {
    const body = {
      name: identity.checkName,
      ...plan.fields,
      models: group.models,
      targets: group.targets,
      revision: request.revision,
      report: request.report,
      labels: { ...plan.fields.labels, ...identity.labels, ...contentLabel },
    };
    batches.push(await submitPlannedBatch(client, body));
    core.saveState("batches", batches.map(({ id }) => id).join(" "));
  }
  return { batches, jobs: stepJobs(pairs, batches) };
}

async function listReusableJobs(
  client: ServiceClient,
  { attempt, report, identity }: StepRequest,
  contentLabel: Readonly<Record<string, string>>,
): Promise<Job[]> {
  // The service reports on one whole batch.
  const isWhole = attempt === 1 || report !== undefined;
  return isWhole ? [] : listFormerJobs(client, { ...identity.runLabels, ...contentLabel });
}

function stepJobs(pairs: readonly StepPair[], batches: readonly Batch[]): StepJob[] {
  const submitted = batches.flatMap((batch) => batch.jobs);
  return pairs.flatMap(({ model: { name = "" }, target, former }): StepJob[] => {
    if (former) return [{ id: former.id, model: name, target, former }];
    const job = submitted.find((one) => one.model === name && one.target === target);
    return job ? [{ id: job.id, model: name, target }] : [];
  });
}
