import { hashSecret } from "../auth/access-token.ts";
import { invalidTokenError } from "../auth/authenticate.ts";
import type { Records } from "../records/open-records.ts";

/** A worker with the token of an attempt at the job. */
export interface AuthenticatedWorker {
  readonly attempt: number;
  /** Records events of the worker that the service did not receive; absent where none are kept. */
  readonly catchUp?: () => Promise<void>;
}

export interface WorkerAuthentication {
  /**
   * @throws ServiceError unauthorized; unavailable where the token cannot be checked yet;
   * job_finished where the job needs no worker
   */
  authenticate(token: string, jobId: string): Promise<AuthenticatedWorker>;
}

/** Authenticates workers on this machine, each by its own secret, and says whom it heard from. */
export function createSecretAuthentication(
  { workers }: Pick<Records, "workers">,
  onHeard: (jobId: string) => void = () => {},
): WorkerAuthentication {
  return {
    async authenticate(token, jobId) {
      const attempt = await workers.findAttemptBySecret(jobId, hashSecret(token));
      if (attempt === undefined) throw wrongWorkerError(jobId);
      onHeard(jobId);
      return { attempt };
    },
  };
}

export function wrongWorkerError(jobId: string): Error {
  return invalidTokenError(`The token is not that of a worker of job "${jobId}"`);
}
