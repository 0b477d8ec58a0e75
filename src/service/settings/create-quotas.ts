import type { Records } from "../../records/open-records.ts";
import { createRateLimiter } from "../../server/http/rate-limiter.ts";
import type { Quotas } from "../../server/http/server-context.ts";
import { createStorageQuota } from "../../server/http/storage-quota.ts";
import type { BlobStore } from "../../storage/blob-store.ts";
import type { Settings } from "./settings.ts";

interface QuotaDependencies {
  readonly records: Records;
  readonly blobs: BlobStore;
  readonly now: () => Date;
}

/** The quotas of the settings. */
export function createQuotas(
  settings: Settings,
  { records, blobs, now }: QuotaDependencies,
): Quotas {
  const { requestsPerMinute, exchangesPerMinute, storedBytes, waitingJobs } = settings.MOS_QUOTAS;
  const createLimiter = (name: "requests" | "exchanges", perMinute: number) =>
    createRateLimiter({ name, perMinute, now });
  return {
    requests: createLimiter("requests", requestsPerMinute),
    exchanges: createLimiter("exchanges", exchangesPerMinute),
    storage: createStorageQuota({ records, blobs, maxBytes: storedBytes }),
    waitingJobs,
    deadlineSeconds: settings.MOS_DEADLINE_SECONDS,
  };
}
