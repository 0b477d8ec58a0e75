import type { ObservedState } from "../observe/observed-state.ts";
import { ownedWorkerJobs } from "../observe/owned-worker-jobs.ts";
import type { Decision } from "./decision.ts";
import { isTerminalAndRecorded } from "./finalizer.ts";

/**
 * Lets the worker Jobs of a recorded job expire. Before, they show which steps are done, and their
 * pods have the logs, however long operator and service are away.
 */
export function setWorkerJobTtls(observed: ObservedState): Decision {
  const { ttlSeconds: seconds } = observed.settings;
  const expiring = isTerminalAndRecorded(observed)
    ? ownedWorkerJobs(observed).filter(
        ({ deleting, end, ttlSeconds }) =>
          !deleting && end !== undefined && ttlSeconds === undefined,
      )
    : [];
  return { actions: expiring.map(({ name }) => ({ type: "setWorkerJobTtl", name, seconds })) };
}
