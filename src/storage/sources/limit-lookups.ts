import { ServiceError } from "../../contract/errors.ts";
import { KeyedSemaphore } from "../../limits/keyed-semaphore.ts";

/** Lookups at once, of all projects at each Hub and of a project, and those of one that wait. */
export const lookupLimits = { all: 32, ofProject: 8, waitingOfProject: 4000 } as const;
const retrySeconds = 10;

/**
 * Bounds how much each project looks up at once, so that one with hundreds of names delays only
 * itself, and how much of it waits: callers can go away, which does not end what they asked for.
 * @throws ServiceError unavailable
 */
export function limitLookups() {
  const { ofProject: perKey, waitingOfProject: waitingPerKey } = lookupLimits;
  const semaphore = new KeyedSemaphore({ perKey, waitingPerKey });
  return async <T>(project: string, lookUp: () => Promise<T>): Promise<T> => {
    using held = await semaphore.acquire(project);
    if (held === undefined) throw tooManyError();
    return await lookUp();
  };
}

function tooManyError(): ServiceError {
  const { waitingOfProject: most } = lookupLimits;
  const message = `${most} names of models wait to be looked up already, the most allowed`;
  const headers = { "retry-after": String(retrySeconds) };
  return new ServiceError("unavailable", message, { headers });
}
