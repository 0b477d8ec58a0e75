import test from "node:test";
import { startS3Server } from "../storage/s3-server.ts";
import { postgresMissing, s3Missing } from "../support/cluster/cluster-missing.ts";
import { runOnPostgres } from "../support/run-on-postgres.ts";
import { bucketServerVariable } from "../support/test-blobs.ts";

const skip = postgresMissing || s3Missing;

test("the service on PostgreSQL and a bucket is as on SQLite and a folder", { skip }, async (t) => {
  const { access } = await startS3Server(t);
  await runOnPostgres(t, {
    environment: { [bucketServerVariable]: JSON.stringify(access) },
    pattern: "test/server/*.test.ts",
    // Those that are left out besides measure models, fuzz requests for minutes or read no records.
    without: ["postgres", "schemathesis", "gates", "negotiate-media-type", "parse-byte-range"],
    // They stop the clock, by which connections to a server would be lost, or count turns of the loop.
    skipPattern: [
      "^a quiet event stream",
      "^a stream ends within five",
      "^a reader that goes away costs",
      "^streams of one token share",
    ].join("|"),
  });
});
