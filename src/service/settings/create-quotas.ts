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
  const {
    MOS_QUOTA_REQUESTS_PER_MINUTE: requests,
    MOS_QUOTA_EXCHANGES_PER_MINUTE: exchanges,
    MOS_QUOTA_BYTES: maxBytes,
  } = settings;
  return {
    requests: createRateLimiter({ name: "requests", perMinute: requests, now }),
    exchanges: createRateLimiter({ name: "exchanges", perMinute: exchanges, now }),
    storage: createStorageQuota({ records, blobs, maxBytes }),
    waitingJobs: settings.MOS_QUOTA_WAITING_JOBS,
    deadlineSeconds: settings.MOS_DEADLINE_SECONDS,
  };
}
