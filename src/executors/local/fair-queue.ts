interface WaitingProject {
  readonly name: string;
  readonly queue: ProjectQueue;
  /** Round in which its next job starts, or could. */
  round: number;
  /** Its jobs that were taken and have not ended. */
  running: number;
  /** Since when jobs of it wait while none runs. */
  waitingSince: number;
}

/**
 * Jobs that wait for a worker: round robin over the projects, first in, first out within each. A
 * project that starts to wait joins in the present round at the earliest, so idle rounds are not
 * saved up, and in its own next one, so that jobs that come one by one have no advantage. One with
 * as many running jobs as it may have is passed over.
 */
export class FairQueue {
  /** Of projects in the same round the first one is served first. */
  readonly #projects = new Map<string, WaitingProject>();
  /** Project of each job that waits. */
  readonly #projectOf = new Map<string, string>();
  /** Of each job that was taken and has not ended. */
  readonly #running = new Map<string, { readonly project: WaitingProject; readonly at: number }>();
  readonly #maxRunning: () => number;
  readonly #now: () => number;
  #round = 0;

  /**
   * @param maxRunning how many jobs of a project may run at once
   * @param now milliseconds of a clock that nobody sets
   */
  constructor(maxRunning = () => Infinity, now = () => performance.now()) {
    this.#maxRunning = maxRunning;
    this.#now = now;
  }

  add(project: string, jobIds: readonly string[]): void {
    const waiting = this.#findOrAddProject(project);
    if (waiting.queue.size === 0) {
      waiting.round = Math.max(waiting.round, this.#round);
      if (waiting.running === 0) waiting.waitingSince = this.#now();
    }
    for (const jobId of jobIds) {
      if (this.#projectOf.has(jobId) || this.#running.has(jobId)) continue;
      waiting.queue.add(jobId);
      this.#projectOf.set(jobId, project);
    }
  }

  /** Removes and returns the job that starts next. */
  take(): string | undefined {
    const next = this.#nextProject();
    const jobId = next?.queue.take();
    if (next === undefined || jobId === undefined) return undefined;
    this.#round = next.round;
    next.round += 1;
    next.running += 1;
    this.#running.set(jobId, { project: next, at: this.#now() });
    this.#projectOf.delete(jobId);
    return jobId;
  }

  /** Says that a job that was taken has ended. */
  end(jobId: string): void {
    const waiting = this.#running.get(jobId)?.project;
    this.#running.delete(jobId);
    if (waiting === undefined) return;
    waiting.running -= 1;
    if (waiting.running === 0) waiting.waitingSince = this.#now();
  }

  /** Requeues a running job behind the next turn of each project that waits now. */
  putBack(jobId: string): void {
    const waiting = this.#running.get(jobId)?.project;
    if (waiting === undefined) throw new Error(`Job "${jobId}" does not run`);
    this.end(jobId);
    this.add(waiting.name, [jobId]);
    // No project that waits is more than one round ahead.
    waiting.round = Math.max(waiting.round, this.#round + 2);
  }

  /** How long a project without running jobs has waited, milliseconds; 0 if there is none. */
  longestWait(): number {
    let longest = 0;
    for (const { queue, running, waitingSince } of this.#projects.values()) {
      if (queue.size > 0 && running === 0) longest = Math.max(longest, this.#now() - waitingSince);
    }
    return longest;
  }

  /** Of the project with most running jobs the one that was taken last, and how long ago, ms. */
  findYoungest(): { readonly jobId: string; readonly ranMs: number } | undefined {
    const most = Math.max(...[...this.#running.values()].map(({ project }) => project.running));
    const youngest = [...this.#running].findLast(([, { project }]) => project.running === most);
    if (youngest === undefined) return undefined;
    const [jobId, { at }] = youngest;
    return { jobId, ranMs: this.#now() - at };
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
    const round = own.round + before;
    let position = before + 1;
    let isBehind = false;
    for (const other of this.#projects.values()) {
      if (other === own) isBehind = true;
      else position += countStarts(other, round, !isBehind);
    }
    return position;
  }

  #findOrAddProject(project: string): WaitingProject {
    const known = this.#projects.get(project);
    if (known !== undefined) return known;
    const added = {
      name: project,
      queue: new ProjectQueue(),
      round: this.#round,
      running: 0,
      waitingSince: this.#now(),
    };
    this.#projects.set(project, added);
    return added;
  }

  #nextProject(): WaitingProject | undefined {
    let next: WaitingProject | undefined;
    const maxRunning = this.#maxRunning();
    for (const waiting of this.#projects.values()) {
      if (waiting.queue.size === 0 || waiting.running >= maxRunning) continue;
      if (next === undefined || waiting.round < next.round) next = waiting;
    }
    return next;
  }
}

/** How many jobs of a project start before a round, or until its end. */
function countStarts({ queue, round }: WaitingProject, end: number, isIncluded: boolean): number {
  const starts = end - round + (isIncluded ? 1 : 0);
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
    // One that was put back stands in the list twice.
    if (this.#numbers?.has(jobId)) this.#numbers = undefined;
    this.#numbers?.set(jobId, this.#numbers.size);
    this.#jobs.push(jobId);
    this.#waiting.add(jobId);
  }

  take(): string | undefined {
    const jobId = this.#first();
    if (jobId === undefined) return undefined;
    this.#waiting.delete(jobId);
    this.#skip();
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
      this.#skip();
    }
  }

  #skip(): void {
    this.#head++;
    if (this.#head < maxTaken || this.#head * 2 < this.#jobs.length) return;
    this.#jobs = this.#jobs.slice(this.#head);
    this.#head = 0;
  }

  #listWaiting(): string[] {
    return this.#jobs.slice(this.#head).filter((id) => this.#waiting.has(id));
  }
}
