import type { Records } from "../../records/open-records.ts";
import { createRateLimiter } from "../../server/http/rate-limiter.ts";
import type { Quotas } from "../../server/http/server-context.ts";
import { createStorageQuota } from "../../server/http/storage-quota.ts";
import type { BlobStore } from "../../storage/blob-store.ts";
import type { Settings } from "./settings.ts";

export function createQuotas(
  settings: Settings,
  { records, blobs, now }: { records: Records; blobs: BlobStore; now: () => Date },
): Quotas {
  const {
    MOS_QUOTA_REQUESTS_PER_MINUTE: requests,
    MOS_QUOTA_EXCHANGES_PER_MINUTE: exchanges,
    MOS_QUOTA_BYTES: maxBytes,
  } = settings;
  return {
    requests: createRateLimiter("requests", requests, now),
    exchanges: createRateLimiter("exchanges", exchanges, now),
    storage: createStorageQuota(records, blobs, maxBytes),
    waitingJobs: settings.MOS_QUOTA_WAITING_JOBS,
    deadlineSeconds: settings.MOS_DEADLINE_SECONDS,
  };
}
