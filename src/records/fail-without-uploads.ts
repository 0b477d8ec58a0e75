import { applyEvent } from "./apply-event.ts";
import { findMissingUploads } from "./find-missing-uploads.ts";
import { findRecord, type JobRecord } from "./find-record.ts";
import type { NewJob } from "./insert-jobs.ts";
import { listNamedUploads } from "./list-named-uploads.ts";
import { missingUploadError } from "./require-uploads.ts";
import { saveRecords } from "./save-records.ts";
import type { WriteTransaction } from "./store.ts";

interface CreatedJobs {
  /** In the order of the jobs. */
  readonly ids: readonly string[];
  readonly jobs: readonly NewJob[];
}

/**
 * Fails new jobs of resources that name uploads which the project does not have, before a worker
 * can begin. A job whose work has begun had them.
 */
export async function failWithoutUploads(
  writing: WriteTransaction,
  project: string,
  { ids, jobs }: CreatedJobs,
): Promise<void> {
  const named = listNamedUploads(jobs.filter(({ hasBegun }) => !hasBegun));
  const missing = new Set(await findMissingUploads(writing.trx, project, named));
  const changes: { before: JobRecord; after: JobRecord }[] = [];
  for (const [i, newJob] of jobs.entries()) {
    const sha256 = listNamedUploads([newJob]).find((hash) => missing.has(hash));
    if (sha256 === undefined || newJob.hasBegun) continue;
    const before = await findRecord(writing, ids[i] ?? "");
    if (before === undefined) continue;
    const { code, message } = missingUploadError(sha256);
    const failure = { type: "failure", error: { code, message } } as const;
    changes.push({
      before,
      after: { ...before, job: applyEvent(before.job, failure, writing.now) },
    });
  }
  await saveRecords(writing, changes);
}
