import test from "node:test";
import { startS3Server } from "../storage/s3-server.ts";
import { postgresMissing, s3Missing } from "../support/cluster/cluster-missing.ts";
import { runOnPostgres } from "../support/run-on-postgres.ts";
import { bucketServerVariable } from "../support/test-blobs.ts";

const skip = postgresMissing || s3Missing;

/**
 * What depends on the database or the bucket: pages, streams, idempotency, quotas, files. Records
 * are tested on both databases themselves; routing, bodies and permissions know neither.
 */
const dependent = [
  "artifact-handlers",
  "batch-archive",
  "batch-handlers",
  "deletion",
  "event-handlers",
  "idempotency",
  "job-handlers",
  "job-lists",
  "log-handlers",
  "log-streams",
  "manifests",
  "model-handlers",
  "quotas",
  "resumed-uploads",
  "retry-batch",
  "storage-quota",
  "suite-handlers",
  "webhook-handlers",
];

test("the service on PostgreSQL and a bucket is as on SQLite and a folder", { skip }, async (t) => {
  const { access } = await startS3Server(t);
  await runOnPostgres(t, {
    environment: { [bucketServerVariable]: JSON.stringify(access) },
    files: dependent.map((name) => `test/server/${name}.test.ts`),
    // They stop the clock, by which connections to a server would be lost, or count iterations of
    // the event loop.
    skipPattern: [
      "^a quiet event stream",
      "^a stream ends within five",
      "^a reader that goes away costs",
      "^streams of one token share",
    ].join("|"),
  });
});
