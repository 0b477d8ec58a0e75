import { ServiceError } from "../../contract/errors.ts";

/** Lookups at once, of all projects at each Hub and of a project, and those of one that wait. */
export const lookupLimits = { all: 32, ofProject: 8, waitingOfProject: 4000 } as const;
const retrySeconds = 10;

interface ProjectTurns {
  active: number;
  readonly waiting: (() => void)[];
}

/**
 * Bounds how much each project looks up at once, so that one with hundreds of names waits alone,
 * and how much of it waits: callers can go away, which does not end what they asked for.
 * @throws ServiceError unavailable
 */
export function createLookupTurns() {
  const projects = new Map<string, ProjectTurns>();
  return async <T>(project: string, lookUp: () => Promise<T>): Promise<T> => {
    const turns = projects.get(project) ?? { active: 0, waiting: [] };
    projects.set(project, turns);
    if (turns.active < lookupLimits.ofProject) turns.active += 1;
    else await waitForTurn(turns);
    try {
      return await lookUp();
    } finally {
      const next = turns.waiting.shift();
      if (next === undefined) turns.active -= 1;
      else next();
      if (turns.active === 0) projects.delete(project);
    }
  };
}

async function waitForTurn({ waiting }: ProjectTurns): Promise<void> {
  if (waiting.length < lookupLimits.waitingOfProject) {
    return new Promise((resolve) => waiting.push(resolve));
  }
  const message = `${waiting.length} names of models wait to be looked up, as many as may`;
  const headers = { "retry-after": String(retrySeconds) };
  throw new ServiceError("unavailable", message, { headers });
}
