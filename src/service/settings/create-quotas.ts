import { quotas } from "../../contract/limits.ts";
import type { Records } from "../../records/open-records.ts";
import { createBodyMemory } from "../../server/http/body-memory.ts";
import { createRateLimiter } from "../../server/http/rate-limiter.ts";
import type { Quotas } from "../../server/http/server-context.ts";
import { createStorageQuota } from "../../server/http/storage-quota.ts";
import type { BlobStore } from "../../storage/blob-store.ts";
import type { Settings } from "./settings.ts";

export function createQuotas(
  settings: Settings,
  { records, blobs, now }: { records: Records; blobs: BlobStore; now: () => Date },
): Quotas {
  const { requestsPerMinute, exchangesPerMinute, storedBytes, waitingJobs } = settings.MOS_QUOTAS;
  return {
    requests: createRateLimiter("requests", requestsPerMinute, now),
    exchanges: createRateLimiter("exchanges", exchangesPerMinute, now),
    workers: createRateLimiter("workers", quotas.workerRequestsPerMinute, now),
    storage: createStorageQuota(records, blobs, storedBytes),
    bodies: createBodyMemory(),
    waitingJobs,
    deadlineSeconds: settings.MOS_DEADLINE_SECONDS,
  };
}
