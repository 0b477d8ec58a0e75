import { hashSecret } from "../auth/access-token.ts";
import { invalidTokenError } from "../auth/authenticate.ts";
import type { Records } from "../records/open-records.ts";

interface StoredBlob {
  readonly sha256: string;
  readonly bytes: number;
}

/** Passes on the bytes of a file, and ends it where there are too many. */
export type MeterBytes = (source: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>;

/** A worker with the token of an attempt at the job. */
export interface AuthenticatedWorker {
  readonly attempt: number;
  /** Records events of the worker that the service did not receive; absent where none are kept. */
  readonly catchUp?: () => Promise<void>;
  /**
   * Stores a blob that the worker left in its own folder; undefined where there is none. Absent
   * where workers send their blobs.
   */
  readonly storeBlob?: (sha256: string, meter: MeterBytes) => Promise<StoredBlob | undefined>;
}

export interface WorkerAuthentication {
  /**
   * @throws ServiceError unauthorized; unavailable where the token cannot be checked yet;
   * job_finished where the job needs no worker
   */
  authenticate(token: string, jobId: string): Promise<AuthenticatedWorker>;
}

interface LocalWorkers {
  /** Called at each request of a worker. */
  readonly onHeard?: (jobId: string) => void;
  readonly storeBlob?: (
    blob: { jobId: string; sha256: string },
    meter: MeterBytes,
  ) => Promise<StoredBlob | undefined>;
}

/**
 * Authenticates workers on this machine, each by its own secret.
 */
export function createSecretAuthentication(
  { workers }: Pick<Records, "workers">,
  { onHeard, storeBlob }: LocalWorkers = {},
): WorkerAuthentication {
  return {
    async authenticate(token, jobId) {
      const attempt = await workers.findAttemptBySecret(jobId, hashSecret(token));
      if (attempt === undefined) throw wrongWorkerError(jobId);
      onHeard?.(jobId);
      return storeBlob
        ? { attempt, storeBlob: (sha256, meter) => storeBlob({ jobId, sha256 }, meter) }
        : { attempt };
    },
  };
}

export function wrongWorkerError(jobId: string): Error {
  return invalidTokenError(`The token is not that of a worker of job "${jobId}"`);
}
