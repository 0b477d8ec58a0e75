import type { SingleSignOn } from "../../auth/single-sign-on.ts";
import type { TokenExchange } from "../../auth/token-exchange.ts";
import type { ServiceStatus } from "../../contract/service-status.ts";
import type { Target } from "../../contract/jobs/target.ts";
import type { TrustPolicy } from "../../contract/people/trust-policy.ts";
import type { Assignment } from "../../contract/worker-protocol/messages.ts";
import type { Executor } from "../../executors/executor.ts";
import type { GitHubApp } from "../../github-app/open-github-app.ts";
import type { Log } from "../../log/json-log.ts";
import type { Records } from "../../records/open-records.ts";
import type { BlobStore } from "../../storage/blob-store.ts";
import type { DiskSpace } from "../../storage/disk-space.ts";
import type { ModelSources } from "../../storage/sources/model-sources.ts";
import type { Tracing } from "../../tracing/open-tracing.ts";
import type { Dashboard } from "./bind-dashboard.ts";
import type { BodyMemory } from "./body-memory.ts";
import type { RateLimiter } from "./rate-limiter.ts";
import type { IsTrustedProxy } from "./remote-address.ts";
import type { ServiceMetrics } from "./service-metrics.ts";
import type { StorageQuota } from "./storage-quota.ts";

/** How much of the service callers may use. */
export interface Quotas {
  /** Of each project. */
  readonly requests: RateLimiter;
  /** Of identity tokens, by each address. */
  readonly exchanges: RateLimiter;
  /** Of each attempt at a job. */
  readonly workers: RateLimiter;
  /** Of each project, bytes. */
  readonly storage: StorageQuota;
  readonly bodies: BodyMemory;
  /** Jobs of a project that may wait. */
  readonly waitingJobs: number;
  /** Longest deadline that a job may ask for, seconds of work. */
  readonly deadlineSeconds: number;
}

/** The parts of the service that the endpoints use. */
export interface ServerContext {
  readonly records: Records;
  readonly blobs: BlobStore;
  /** Files that the service has credentials for. */
  readonly sources: ModelSources;
  /** Fails with storage_full where the disk has no room for more work. */
  readonly requireSpace: () => Promise<void>;
  readonly executor: Executor;
  readonly targets: readonly Target[];
  readonly limits: Assignment["limits"];
  /** Undefined where the service exchanges no identity tokens. */
  readonly trust?: TrustPolicy | undefined;
  /** Undefined where the service has no trust policy for identity tokens. */
  readonly exchangeToken?: TokenExchange | undefined;
  /** Reports batches to GitHub; undefined where the service is not a GitHub App. */
  readonly github?: GitHubApp | undefined;
  /** At which people sign in; undefined if there is none. */
  readonly singleSignOn?: SingleSignOn | undefined;
  readonly quotas: Quotas;
  /** Address at which people reach the service, without `/v1`; else that of the request. */
  readonly publicUrl?: string | undefined;
  readonly isTrustedProxy: IsTrustedProxy;
  /** The page of the service; undefined where it was not built. */
  readonly dashboard?: Dashboard | undefined;
  readonly metrics: ServiceMetrics;
  /** Undefined where nothing is traced. */
  readonly tracing?: Tracing | undefined;
  /** What `GET /status` says that does not change. */
  readonly about: Pick<ServiceStatus, "startedAt" | "versions" | "records">;
  /** Space of the disk of the records, bytes. */
  readonly readDiskSpace: DiskSpace["read"];
  readonly now: () => Date;
  readonly log: Log;
}
