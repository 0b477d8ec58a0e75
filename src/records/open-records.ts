import { artifactRecords } from "./artifact-records.ts";
import { auditRecords } from "./audit-records.ts";
import { attemptRecords } from "./attempt-records.ts";
import { baselineRecords } from "./baseline-records.ts";
import { batchRecords } from "./batch-records.ts";
import { changeRecords } from "./change-records.ts";
import { Changes } from "./changes.ts";
import { clusterRecords } from "./cluster-records.ts";
import { idempotencyRecords } from "./idempotency-records.ts";
import { identityRecords } from "./identity-records.ts";
import { jobBlobRecords } from "./job-blob-records.ts";
import { jobRecords } from "./job-records.ts";
import { logRecords } from "./log-records.ts";
import { manifestRecords } from "./manifest-records.ts";
import { memberRecords } from "./member-records.ts";
import { metricRecords } from "./metric-records.ts";
import { deleteExpired } from "./delete-expired.ts";
import { deletionRecords } from "./deletion-records.ts";
import { deliveryRecords } from "./delivery-records.ts";
import { modelRecords } from "./model-records.ts";
import { openDatabase } from "./open-database.ts";
import { ownerRecords } from "./owner-records.ts";
import { passkeyRecords } from "./passkey-records.ts";
import { projectBlobRecords } from "./project-blob-records.ts";
import { projectRecords } from "./project-records.ts";
import { releasedBlobRecords } from "./released-blob-records.ts";
import { reportRecords } from "./report-records.ts";
import type { Retention } from "./retention.ts";
import { serviceKeys } from "./service-keys.ts";
import { sessionRecords } from "./session-records.ts";
import type { Store } from "./store.ts";
import { suiteRecords } from "./suite-records.ts";
import { tokenRecords } from "./token-records.ts";
import { traceRecords } from "./trace-records.ts";
import { usageRecords } from "./usage-records.ts";
import { webhookDeliveryRecords } from "./webhook-delivery-records.ts";
import { webhookQueue } from "./webhook-queue.ts";
import { webhookRecords } from "./webhook-records.ts";
import { workerRecords } from "./worker-records.ts";

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
    passkeys: passkeyRecords(store),
    keys: serviceKeys(store),
    audit: auditRecords(store),
    identities: identityRecords(store),
    idempotency: idempotencyRecords(store),
    reports: reportRecords(store),
    deliveries: deliveryRecords(store),
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
