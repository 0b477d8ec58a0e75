interface ProjectTurns {
  readonly queue: ProjectQueue;
  /** Turns from one job of the project to its next. */
  readonly step: number;
  /** Turn at which its next job starts, or could. */
  turn: number;
  /** Its jobs that were taken and have not ended. */
  running: number;
}

/** Tolerance for sums of steps, which are rounded. */
const sameTurn = 1e-9;

/**
 * Jobs that wait for a worker: those of a project in their order, and the projects in turns, each
 * with as many jobs a turn as its weight. A project that begins to wait joins at the present turn
 * at the earliest, so that it has saved up nothing, and at its own next one, so that jobs that come
 * one by one have no advantage. One with as many running jobs as it may have is passed over.
 */
export class FairQueue {
  readonly #weights: ReadonlyMap<string, number>;
  /** Of projects with the same turn the first one is served first. */
  readonly #projects = new Map<string, ProjectTurns>();
  /** Project of each job that waits. */
  readonly #projectOf = new Map<string, string>();
  /** Of each job that was taken and has not ended. */
  readonly #runningOf = new Map<string, ProjectTurns>();
  readonly #maxRunning: () => number;
  #turn = 0;

  /**
   * @param weights of projects; those that are left out have 1
   * @param maxRunning how many jobs of a project may run at once
   */
  constructor(weights: ReadonlyMap<string, number>, maxRunning = () => Infinity) {
    this.#weights = weights;
    this.#maxRunning = maxRunning;
  }

  add(project: string, jobIds: readonly string[]): void {
    const turns = this.#findOrAddProject(project);
    if (turns.queue.size === 0) turns.turn = Math.max(turns.turn, this.#turn);
    for (const jobId of jobIds) {
      if (this.#projectOf.has(jobId) || this.#runningOf.has(jobId)) continue;
      turns.queue.add(jobId);
      this.#projectOf.set(jobId, project);
    }
  }

  /** The job that starts next. */
  take(): string | undefined {
    const next = this.#nextProject();
    const jobId = next?.queue.take();
    if (next === undefined || jobId === undefined) return undefined;
    this.#turn = next.turn;
    next.turn += next.step;
    next.running += 1;
    this.#runningOf.set(jobId, next);
    this.#projectOf.delete(jobId);
    return jobId;
  }

  /** Says that a job that was taken has ended. */
  end(jobId: string): void {
    const turns = this.#runningOf.get(jobId);
    if (turns !== undefined) turns.running -= 1;
    this.#runningOf.delete(jobId);
  }

  /** Takes out a job that will not start. */
  remove(jobId: string): void {
    this.#projects.get(this.#projectOf.get(jobId) ?? "")?.queue.remove(jobId);
    this.#projectOf.delete(jobId);
  }

  /** 1 for the job that starts next; undefined for one that does not wait. */
  positionOf(jobId: string): number | undefined {
    const own = this.#projects.get(this.#projectOf.get(jobId) ?? "");
    const before = own?.queue.countBefore(jobId);
    if (own === undefined || before === undefined) return undefined;
    const turn = own.turn + before * own.step;
    let position = before + 1;
    let isBehind = false;
    for (const other of this.#projects.values()) {
      if (other === own) isBehind = true;
      else position += countStarts(other, turn, !isBehind);
    }
    return position;
  }

  #findOrAddProject(project: string): ProjectTurns {
    const known = this.#projects.get(project);
    if (known !== undefined) return known;
    const step = 1 / (this.#weights.get(project) ?? 1);
    const added = { queue: new ProjectQueue(), step, turn: this.#turn, running: 0 };
    this.#projects.set(project, added);
    return added;
  }

  #nextProject(): ProjectTurns | undefined {
    let next: ProjectTurns | undefined;
    const maxRunning = this.#maxRunning();
    for (const turns of this.#projects.values()) {
      if (turns.queue.size === 0 || turns.running >= maxRunning) continue;
      if (next === undefined || turns.turn < next.turn - sameTurn) next = turns;
    }
    return next;
  }
}

/** How many jobs of a project start before a turn, or until it. */
function countStarts(
  { queue, turn, step }: ProjectTurns,
  end: number,
  isIncluded: boolean,
): number {
  const steps = (end - turn) / step;
  const starts = isIncluded ? Math.floor(steps + sameTurn) + 1 : Math.ceil(steps - sameTurn);
  return Math.min(queue.size, Math.max(0, starts));
}

/** Taken jobs that are kept before the list is shortened, which costs as much as its length. */
const maxTaken = 1024;

/** Jobs of one project that wait, first in, first out. */
class ProjectQueue {
  #jobs: string[] = [];
  /** Index of the first job that may wait. */
  #head = 0;
  readonly #waiting = new Set<string>();
  /** Numbers of the jobs in their order, without gaps; made again after a removal. */
  #numbers: Map<string, number> | undefined;

  get size(): number {
    return this.#waiting.size;
  }

  add(jobId: string): void {
    this.#numbers?.set(jobId, this.#numbers.size);
    this.#jobs.push(jobId);
    this.#waiting.add(jobId);
  }

  take(): string | undefined {
    const jobId = this.#first();
    if (jobId !== undefined) this.#waiting.delete(jobId);
    return jobId;
  }

  remove(jobId: string): void {
    if (this.#waiting.delete(jobId)) this.#numbers = undefined;
  }

  /** How many jobs of the project start before this one; undefined where it does not wait. */
  countBefore(jobId: string): number | undefined {
    if (!this.#waiting.has(jobId)) return undefined;
    this.#numbers ??= new Map(this.#listWaiting().map((id, i) => [id, i]));
    return (this.#numbers.get(jobId) ?? 0) - (this.#numbers.get(this.#first() ?? "") ?? 0);
  }

  #first(): string | undefined {
    for (;;) {
      const jobId = this.#jobs[this.#head];
      if (jobId === undefined || this.#waiting.has(jobId)) return jobId;
      this.#head++;
      if (this.#head < maxTaken || this.#head * 2 < this.#jobs.length) continue;
      this.#jobs = this.#jobs.slice(this.#head);
      this.#head = 0;
    }
  }

  #listWaiting(): string[] {
    return this.#jobs.slice(this.#head).filter((id) => this.#waiting.has(id));
  }
}
