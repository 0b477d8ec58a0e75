import { ServiceError } from "../../contract/errors.ts";

/** Each takes the memory of a chunk. */
const uploadsAtOnce = { all: 48, ofProject: 8, ofWorkers: 16 };
const retrySeconds = 10;

/**
 * Bounds how many files arrive at once: of each project, so that one does not keep out the others,
 * and apart from them of workers, whose project is undefined here.
 * @throws ServiceError unavailable
 */
export function createUploadTurns() {
  const active = new Map<string | undefined, number>();
  const add = (project: string | undefined, count: number) => {
    const own = (active.get(project) ?? 0) + count;
    if (own === 0) active.delete(project);
    else active.set(project, own);
  };
  return async <T>(project: string | undefined, transfer: () => Promise<T>): Promise<T> => {
    if (!hasRoom(active, project)) throw noTurnError();
    add(project, 1);
    try {
      return await transfer();
    } finally {
      add(project, -1);
    }
  };
}

function hasRoom(
  active: ReadonlyMap<string | undefined, number>,
  project: string | undefined,
): boolean {
  const own = active.get(project) ?? 0;
  if (project === undefined) return own < uploadsAtOnce.ofWorkers;
  const all = [...active.values()].reduce((sum, count) => sum + count, 0);
  const ofProjects = all - (active.get(undefined) ?? 0);
  return own < uploadsAtOnce.ofProject && ofProjects < uploadsAtOnce.all;
}

function noTurnError(): ServiceError {
  const message = "More files arrive at once than there is room for";
  const headers = { "retry-after": String(retrySeconds) };
  return new ServiceError("unavailable", message, { headers });
}
