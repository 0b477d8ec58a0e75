/** Taken jobs that are kept before the list is shortened, which costs as much as its length. */
const maxTaken = 1024;

/** Jobs of one project that wait, first in, first out. */
export class ProjectQueue {
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
