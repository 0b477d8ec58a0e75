import { artifactRecords } from "./jobs/artifact-records.ts";
import { auditRecords } from "./people/audit-records.ts";
import { attemptRecords } from "./jobs/attempt-records.ts";
import { baselineRecords } from "./jobs/baseline-records.ts";
import { batchRecords } from "./jobs/batch-records.ts";
import { changeRecords } from "./jobs/change-records.ts";
import { Changes } from "./database/changes.ts";
import { clusterRecords } from "./jobs/cluster-records.ts";
import { idempotencyRecords } from "./people/idempotency-records.ts";
import { identityRecords } from "./people/identity-records.ts";
import { jobBlobRecords } from "./blobs/job-blob-records.ts";
import { jobRecords } from "./jobs/job-records.ts";
import { logRecords } from "./jobs/log-records.ts";
import { manifestRecords } from "./blobs/manifest-records.ts";
import { memberRecords } from "./people/member-records.ts";
import { metricRecords } from "./jobs/metric-records.ts";
import { deleteExpired } from "./jobs/delete-expired.ts";
import { deletionRecords } from "./jobs/deletion-records.ts";
import { githubEventRecords } from "./deliveries/github-event-records.ts";
import { modelRecords } from "./blobs/model-records.ts";
import { openDatabase } from "./database/open-database.ts";
import { ownerRecords } from "./people/owner-records.ts";
import { projectBlobRecords } from "./blobs/project-blob-records.ts";
import { projectRecords } from "./people/project-records.ts";
import { releasedBlobRecords } from "./blobs/released-blob-records.ts";
import { reportRecords } from "./jobs/report-records.ts";
import type { Retention } from "./jobs/retention.ts";
import { serviceKeys } from "./people/service-keys.ts";
import { sessionRecords } from "./people/session-records.ts";
import type { Store } from "./database/store.ts";
import { suiteRecords } from "./jobs/suite-records.ts";
import { tokenRecords } from "./people/token-records.ts";
import { traceRecords } from "./jobs/trace-records.ts";
import { usageRecords } from "./people/usage-records.ts";
import { webhookDeliveryRecords } from "./deliveries/webhook-delivery-records.ts";
import { webhookQueue } from "./deliveries/webhook-queue.ts";
import { webhookRecords } from "./deliveries/webhook-records.ts";
import { workerRecords } from "./jobs/worker-records.ts";

export type Records = Awaited<ReturnType<typeof openRecords>>;

export interface RecordsOptions {
  readonly now: () => Date;
  /** How many jobs of a project may wait when more are created; any number without it. */
  readonly maxWaitingJobs?: number;
}

/**
 * Opens a database, as `openDatabase()` does, and brings it to the present schema.
 * @throws UnusableDatabaseError
 */
export async function openRecords(
  database: string,
  { now, maxWaitingJobs = Infinity }: RecordsOptions,
) {
  const changes = new Changes();
  const { close, ...opened } = await openDatabase(database, changes);
  const store: Store = { ...opened, changes, now, maxWaitingJobs };
  return {
    projects: projectRecords(store),
    owners: ownerRecords(store),
    jobs: jobRecords(store),
    batches: batchRecords(store),
    suites: suiteRecords(store),
    baselines: baselineRecords(store),
    projectBlobs: projectBlobRecords(store),
    manifests: manifestRecords(store),
    models: modelRecords(store),
    releasedBlobs: releasedBlobRecords(store),
    deletions: deletionRecords(store),
    /** Deletes what is older than its time to live. */
    deleteExpired: (retention: Retention) => deleteExpired(store, retention),
    cluster: clusterRecords(store),
    jobBlobs: jobBlobRecords(store),
    artifacts: artifactRecords(store),
    webhooks: webhookRecords(store),
    webhookDeliveries: webhookDeliveryRecords(store),
    webhookQueue: webhookQueue(store),
    logs: logRecords(store),
    members: memberRecords(store),
    tokens: tokenRecords(store),
    sessions: sessionRecords(store),
    keys: serviceKeys(store),
    audit: auditRecords(store),
    identities: identityRecords(store),
    idempotency: idempotencyRecords(store),
    reports: reportRecords(store),
    githubEvents: githubEventRecords(store),
    usage: usageRecords(store),
    metrics: metricRecords(store),
    workers: workerRecords(store),
    attempts: attemptRecords(store),
    traces: traceRecords(store),
    changeLog: changeRecords(store),
    changes,
    /** This process among those that work on the records. */
    replica: store.replica,
    close,
  };
}
