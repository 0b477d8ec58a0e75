import type { JobStatus } from "../contract/status.ts";

export interface JobProgress {
  readonly label: string;
  readonly status: JobStatus;
  readonly fraction: number;
  readonly message: string;
}

/** Where the block is written: a terminal. */
export interface Screen {
  readonly columns: number;
  readonly rows: number;
  write(text: string): unknown;
}

const barWidth = 16;

/** Lines of progress at the bottom of a terminal, renewed in place while other lines pass above them. */
export class StatusBlock {
  readonly #screen: Screen;
  #jobs: readonly JobProgress[] = [];
  #drawn: readonly string[] = [];

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  update(jobs: readonly JobProgress[]): void {
    this.#jobs = jobs;
    const { columns, rows } = this.#screen;
    const isDrawn = statusLines(jobs, columns, rows).join("\n") === this.#drawn.join("\n");
    if (!isDrawn) this.#redraw("");
  }

  /** Prints a line that stays, above the block. */
  print(line: string): void {
    this.#redraw(`${line}\n`);
  }

  /** Draws the block for the size that the terminal has now. */
  resize(): void {
    this.#redraw("");
  }

  /** Takes the block away. */
  clear(): void {
    this.#jobs = [];
    this.#redraw("");
  }

  #redraw(above: string): void {
    const { columns, rows } = this.#screen;
    // A terminal that became narrower has wrapped the lines that were drawn.
    const height = this.#drawn.reduce(
      (sum, line) => sum + Math.max(1, Math.ceil(line.length / columns)),
      0,
    );
    const erase = height === 0 ? "" : `\u001b[${height}A\r\u001b[J`;
    this.#drawn = statusLines(this.#jobs, columns, rows);
    this.#screen.write(erase + above + this.#drawn.map((line) => `${line}\n`).join(""));
  }
}

/** One line a job, or one for all of them where the terminal is too low. */
export function statusLines(jobs: readonly JobProgress[], columns: number, rows: number): string[] {
  if (jobs.length === 0) return [];
  const lines =
    jobs.length < rows ? jobs.map((job) => jobLine(job, jobs, columns)) : [summaryLine(jobs)];
  // The last column stays free: terminals differ in what they do after writing to it.
  return lines.map((line) => truncateLine(line, Math.max(1, columns - 1)));
}

function jobLine(job: JobProgress, all: readonly JobProgress[], columns: number): string {
  const label = job.label.padEnd(Math.max(...all.map((other) => other.label.length)));
  const percent = `${Math.floor(job.fraction * 100)}%`.padStart(4);
  const filled = Math.round(job.fraction * barWidth);
  const bar = columns < 60 ? "" : `[${"#".repeat(filled)}${"-".repeat(barWidth - filled)}] `;
  return `${label} ${bar}${percent} ${job.status.padEnd(10)} ${job.message}`.trimEnd();
}

function summaryLine(jobs: readonly JobProgress[]): string {
  const mean = jobs.reduce((sum, job) => sum + job.fraction, 0) / jobs.length;
  const completed = jobs.filter((job) => job.status === "Completed").length;
  return `${Math.floor(mean * 100)}%, ${completed} of ${jobs.length} jobs completed`;
}

function truncateLine(line: string, width: number): string {
  return line.length <= width ? line : `${line.slice(0, width - 1)}…`;
}
