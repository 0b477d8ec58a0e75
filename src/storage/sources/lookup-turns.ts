/** Lookups at once: of all projects at each Hub, and of a project. */
export const lookupsAtOnce = { all: 32, ofProject: 8 } as const;

interface ProjectTurns {
  active: number;
  readonly waiting: (() => void)[];
}

/** Bounds how much each project looks up at once, so that one with hundreds of names waits alone. */
export function createLookupTurns() {
  const projects = new Map<string, ProjectTurns>();
  return async <T>(project: string, lookUp: () => Promise<T>): Promise<T> => {
    const turns = projects.get(project) ?? { active: 0, waiting: [] };
    projects.set(project, turns);
    if (turns.active < lookupsAtOnce.ofProject) turns.active += 1;
    else await new Promise<void>((resolve) => turns.waiting.push(resolve));
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
