import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { s3FileContent, startS3Server } from "../storage/s3-server.ts";
import { startPostgres } from "./postgres-server.ts";
import { type RunningService, startRunningService } from "./running-service.ts";

interface ReplicatedService {
  /** Starts a replica with a data folder of its own. */
  readonly startReplica: () => Promise<RunningService>;
  /** What names the server and the bucket. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Starts replicas of the service on one PostgreSQL server and one bucket. */
export async function replicateService(
  t: Pick<TestContext, "after">,
  environment: Readonly<Record<string, string>> = {},
): Promise<ReplicatedService> {
  const { url } = await startPostgres(t);
  const { access } = await startS3Server(t);
  const folder = await mkdtemp(join(tmpdir(), "replicas-"));
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 20 }));
  const bucketFile = join(folder, "s3.yaml");
  await writeFile(bucketFile, s3FileContent(access));
  const shared = {
    MOS_DATABASE_URL: url,
    MOS_S3_FILE: bucketFile,
    ...environment,
  };
  let token: string | undefined;
  return {
    environment: shared,
    async startReplica() {
      const directory = await mkdtemp(join(folder, "data-"));
      const from = token === undefined ? {} : { from: { directory, token } };
      const replica = await startRunningService(t, { environment: shared, directory, ...from });
      ({ token } = replica);
      return replica;
    },
  };
}
