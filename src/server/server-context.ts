import type { Target } from "../contract/target.ts";
import type { TrustPolicy } from "../contract/trust-policy.ts";
import type { Assignment } from "../contract/worker.ts";
import type { GitHubApp } from "../github-app/open-github-app.ts";
import type { Records } from "../records/open-records.ts";
import type { BlobStore } from "../storage/blob-store.ts";
import type { Executor } from "../executors/executor.ts";
import type { Log } from "../log/json-log.ts";

/** What the endpoints work with. */
export interface ServerContext {
  readonly records: Records;
  readonly blobs: BlobStore;
  readonly executor: Executor;
  readonly targets: readonly Target[];
  readonly limits: Assignment["limits"];
  /** Whose identity tokens are exchanged for access tokens; undefined where nobody's. */
  readonly trust?: TrustPolicy | undefined;
  /** Tells GitHub of batches; undefined where the service is no GitHub App. */
  readonly github?: GitHubApp | undefined;
  readonly now: () => Date;
  readonly log: Log;
}
