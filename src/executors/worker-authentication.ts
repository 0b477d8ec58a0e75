import type { Records } from "../records/open-records.ts";
import { hashSecret } from "../auth/access-token.ts";
import { invalidTokenError } from "../auth/authenticate.ts";

/** A worker whose token was found to be that of an attempt at the job. */
export interface AuthenticatedWorker {
  readonly attempt: number;
  /** Records what the service misses of the worker's events; absent where nothing keeps them. */
  readonly catchUp?: () => Promise<void>;
}

export interface WorkerAuthentication {
  /** @throws ServiceError unauthorized, unavailable where it cannot be known yet, job_finished where the job needs no worker */
  authenticate(token: string, jobId: string): Promise<AuthenticatedWorker>;
}

/** Workers on this machine, each with a secret of its own. */
export function createSecretAuthentication({
  workers,
}: Pick<Records, "workers">): WorkerAuthentication {
  return {
    async authenticate(token, jobId) {
      const attempt = await workers.findAttemptBySecret(jobId, hashSecret(token));
      if (attempt === undefined) throw wrongWorkerError(jobId);
      return { attempt };
    },
  };
}

export function wrongWorkerError(jobId: string): Error {
  return invalidTokenError(`The token is not that of a worker of job "${jobId}"`);
}
