import type { Job } from "../../contract/jobs/job.ts";
import {
  findUploadHash,
  isRemoteSource,
  uploadSource,
} from "../../contract/models/model-source.ts";
import type { Owner } from "../../contract/people/principal.ts";
import { isTerminal, jobStatus } from "../../contract/jobs/status.ts";
import { target } from "../../contract/jobs/target.ts";
import {
  type Assignment,
  type ModelOutline,
  type OptimizedShare,
  optimizedShare,
} from "../../contract/worker-protocol/messages.ts";
import { currentAttempts, findAttempts, type JobPart } from "./find-attempts.ts";
import { hasJobBlob } from "../blobs/job-blob-records.ts";
import { findManifestFiles } from "../blobs/manifest-records.ts";
import { parseOwner } from "../people/owner-records.ts";
import { parseJob } from "./find-record.ts";
import type { WriteTransaction } from "../database/store.ts";

/** An assignment without the limits, which are the service's, and without what earlier jobs took. */
type NewAssignment = Omit<Assignment, "limits" | "earlierCosts">;

/** Undefined where the job or the attempt has ended, or a later one has replaced it. */
export async function findOpenAttempt(trx: WriteTransaction["trx"], jobId: string, number: number) {
  const job = await trx
    .selectFrom("jobs")
    .select("status")
    .where("id", "=", jobId)
    .executeTakeFirst();
  if (job === undefined || isTerminal(jobStatus.parse(job.status))) return undefined;
  const current = currentAttempts(await findAttempts(trx, jobId));
  return current.find(({ attempt, endedAt }) => attempt === number && endedAt === null);
}

/** What the worker of an attempt does; undefined where the job or the attempt has ended. */
export async function findAssignment(
  trx: WriteTransaction["trx"],
  jobId: string,
  number: number,
): Promise<NewAssignment | undefined> {
  const attempt = await findOpenAttempt(trx, jobId, number);
  if (attempt === undefined) return undefined;
  const jobs = trx.selectFrom("jobs").selectAll();
  const row = await jobs.where("id", "=", jobId).executeTakeFirstOrThrow();
  const job = parseJob(row.document);
  const { id, kind, recipe, dryRun } = job;
  const step = attempt.part?.step;
  const isLater = step === "optimize" || step === "assemble";
  const finished = isLater ? await listOptimizedShares(trx, jobId) : [];
  const shares =
    step === "assemble" ? finished : finished.filter(({ index }) => index === attempt.part?.index);
  const outline = isLater ? await findOutline(trx, jobId) : null;
  return {
    id,
    kind,
    recipe,
    dryRun,
    model: await findAssignedModel(trx, job, attempt.part, parseOwner(row)),
    target: target.parse(JSON.parse(row.target_document)),
    attempt: number,
    part: attempt.part && { ...attempt.part, shares, outline },
    baseline: await findBaselineFiles(trx, job, attempt.part),
    latencyLimits: pickLatencyLimits(job.gateLimits),
    comparison: await findComparison(trx, job, attempt.part),
  };
}

function pickLatencyLimits({
  maxLatencyRatio,
  maxLatencyRegression,
}: Job["gateLimits"]): Assignment["latencyLimits"] {
  return { maxLatencyRatio, maxLatencyRegression };
}

/** Files of the baseline's result where this worker is to time them; null if there are none. */
async function findBaselineFiles(
  trx: WriteTransaction["trx"],
  { baseline, gateLimits, dryRun }: Job,
  part: JobPart | null,
): Promise<Assignment["baseline"]> {
  const isEvaluated = !dryRun && (part === null || part.step === "assemble");
  if (baseline === null || gateLimits.maxLatencyRegression === undefined || !isEvaluated)
    return null;
  const artifacts = await listArtifacts(trx, baseline.jobId);
  const files = ["model", "weights"].flatMap((kind) =>
    artifacts.filter((artifact) => artifact.kind === kind),
  );
  return files.length === 0 ? null : files.map(({ name, sha256 }) => ({ name, sha256 }));
}

/** Jobs of a suite say what tells their models from others; workers of parts do not have them whole. */
async function findComparison(
  trx: WriteTransaction["trx"],
  { baseline, batchId }: Job,
  part: JobPart | null,
): Promise<Assignment["comparison"]> {
  if (part !== null || batchId === null) return null;
  const batch = await trx
    .selectFrom("batches")
    .select("suite")
    .where("id", "=", batchId)
    .executeTakeFirst();
  if (batch === undefined || batch.suite === null) return null;
  const artifacts = baseline === null ? [] : await listArtifacts(trx, baseline.jobId);
  const description = artifacts.find(({ kind }) => kind === "description");
  return { description: description?.sha256 ?? null };
}

async function listArtifacts(
  trx: WriteTransaction["trx"],
  jobId: string,
): Promise<Job["artifacts"]> {
  const row = await trx
    .selectFrom("jobs")
    .select("document")
    .where("id", "=", jobId)
    .executeTakeFirst();
  return row === undefined ? [] : parseJob(row.document).artifacts;
}

/**
 * Later steps work on the file that was sharded. It is in the blob store, unless the source is a
 * file that the workers read directly. A hash that no worker of the job has stored is not believed:
 * the file could be another's.
 */
async function findAssignedModel(
  trx: WriteTransaction["trx"],
  job: Job,
  part: JobPart | null,
  owner: Owner,
): Promise<Assignment["model"]> {
  const { actualSha256, bytes: _bytes, ...named } = job.model;
  const manifest = findUploadHash(named.source);
  const files = manifest && (await findManifestFiles(trx, owner, manifest));
  const pinned = files ? { ...named, files } : named;
  if (part === null || part.step === "shard" || actualSha256 === null) return pinned;
  const model = { ...pinned, sha256: actualSha256 };
  const source = uploadSource(actualSha256);
  if (!isRemoteSource(pinned.source)) return model;
  return (await hasJobBlob(trx, job.id, actualSha256)) ? { ...model, source } : pinned;
}

async function listOptimizedShares(
  trx: WriteTransaction["trx"],
  jobId: string,
): Promise<OptimizedShare[]> {
  const rows = await trx
    .selectFrom("job_shares")
    .select(["share as index", "sha256", "bytes"])
    .where("job_id", "=", jobId)
    .orderBy("share")
    .execute();
  return rows.map((row) => optimizedShare.parse(row));
}

async function findOutline(
  trx: WriteTransaction["trx"],
  jobId: string,
): Promise<ModelOutline | null> {
  const row = await trx
    .selectFrom("job_outlines")
    .select(["sha256", "bytes"])
    .where("job_id", "=", jobId)
    .executeTakeFirst();
  return row ?? null;
}
