import { type JobProgress, statusLines } from "./status-lines.ts";

/** A terminal. */
interface Screen {
  readonly columns: number;
  readonly rows: number;
  write(text: string): unknown;
}

/** Lines of progress that stay at the bottom of a terminal, below other lines that are printed. */
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

  /** Prints a line above the block. */
  print(line: string): void {
    this.#redraw(`${line}\n`);
  }

  /** Draws the block for the size that the terminal has now. */
  resize(): void {
    this.#redraw("");
  }

  /** Erases the block. */
  clear(): void {
    this.#jobs = [];
    this.#redraw("");
  }

  #redraw(above: string): void {
    const { columns, rows } = this.#screen;
    // A terminal that became narrower has wrapped the lines on it.
    const height = this.#drawn.reduce(
      (sum, line) => sum + Math.max(1, Math.ceil(line.length / columns)),
      0,
    );
    const erase = height === 0 ? "" : `\u001b[${height}A\r\u001b[J`;
    this.#drawn = statusLines(this.#jobs, columns, rows);
    this.#screen.write(erase + above + this.#drawn.map((line) => `${line}\n`).join(""));
  }
}
