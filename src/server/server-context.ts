import type { TokenExchange } from "../auth/token-exchange.ts";
import type { Target } from "../contract/target.ts";
import type { Assignment } from "../contract/worker.ts";
import type { Executor } from "../executors/executor.ts";
import type { GitHubApp } from "../github-app/open-github-app.ts";
import type { Log } from "../log/json-log.ts";
import type { Records } from "../records/open-records.ts";
import type { BlobStore } from "../storage/blob-store.ts";
import type { TakeRequest } from "./rate-limiter.ts";

/** The parts of the service that the endpoints use. */
export interface ServerContext {
  readonly records: Records;
  readonly blobs: BlobStore;
  /** Fails with storage_full where the disk has no room for more work. */
  readonly requireSpace: () => Promise<void>;
  readonly executor: Executor;
  readonly targets: readonly Target[];
  readonly limits: Assignment["limits"];
  /** Undefined where the service has no trust policy for identity tokens. */
  readonly exchangeToken?: TokenExchange | undefined;
  /** Reports batches to GitHub; undefined where the service is no GitHub App. */
  readonly github?: GitHubApp | undefined;
  /** For each request, with the caller's project. */
  readonly takeRequest: TakeRequest;
  /** For each exchange of an identity token, with the caller's address. */
  readonly takeExchange: TakeRequest;
  readonly now: () => Date;
  readonly log: Log;
}
