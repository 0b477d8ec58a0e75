import type { ServiceClient } from "./service-client.ts";
import { hasFailedGate } from "../contract/jobs/gate.ts";
import type { Job } from "../contract/jobs/job.ts";
import type { ModelReference } from "../contract/models/model.ts";
import { redactSource } from "../contract/text/redact-source.ts";
import { listJobs } from "./list-jobs.ts";

/** Jobs with the labels that completed, with their gates passed. */
export async function listFormerJobs(
  client: ServiceClient,
  labels: Readonly<Record<string, string>>,
): Promise<Job[]> {
  const jobs = await listJobs(client, { labels, status: ["Completed"] });
  return jobs.filter(({ gates }) => !hasFailedGate(gates));
}

/** The job that compressed the very same model for the target. */
export function findFormerJob(
  jobs: readonly Job[],
  model: ModelReference,
  target: string,
): Job | undefined {
  const { name, source, sha256 } = model;
  // The model at a URL may have changed since.
  if (!source.startsWith("upload:") && sha256 === undefined) return undefined;
  return jobs.find(
    (job) =>
      job.target === target &&
      job.model.name === name &&
      job.model.source === redactSource(source) &&
      job.model.sha256 === sha256,
  );
}
