import assert from "node:assert/strict";
import { test } from "node:test";
import { StatusBlock } from "../../src/demo/status-block.ts";
import { type JobProgress, statusLines } from "../../src/demo/status-lines.ts";

const jobs: JobProgress[] = [
  { label: "recognition cpu", status: "Optimizing", fraction: 0.456, message: "Timed run 3 of 20" },
  { label: "voice cpu-int8", status: "Pending", fraction: 0, message: "" },
];

test("statusLines() shows a bar where there is room", () => {
  assert.deepEqual(statusLines(jobs, 100, 24), [
    "recognition cpu [#######---------]  45% Optimizing Timed run 3 of 20",
    "voice cpu-int8  [----------------]   0% Pending",
  ]);
});

test("statusLines() never wraps, however narrow the terminal is", () => {
  for (let columns = 1; columns < 100; columns++) {
    for (const line of statusLines(jobs, columns, 24))
      assert(line.length <= Math.max(1, columns - 1), line);
  }
});

test("statusLines() sums up where the terminal is too low", () => {
  assert.deepEqual(statusLines(jobs, 80, 2), ["22%, 0 of 2 jobs completed"]);
});

/** What a terminal shows after everything that was written to it. */
class TestScreen {
  columns = 80;
  readonly rows = 24;
  lines: string[] = [""];

  write(text: string): void {
    const [plain = "", ...commands] = text.split("\u001b[");
    this.#type(plain);
    for (const command of commands) {
      const up = /^(\d+)A\r$/.exec(command)?.[1];
      if (up === undefined) this.#type(command.replace(/^J/, ""));
      else this.lines.splice(-Number(up) - 1, Infinity, "");
    }
  }

  #type(text: string): void {
    const [first = "", ...others] = text.split("\n");
    const typed = [`${this.lines.pop() ?? ""}${first}`, ...others];
    this.lines.push(...typed.flatMap((line) => this.#wrapped(line)));
  }

  #wrapped(line: string): string[] {
    const rows = Math.max(1, Math.ceil(line.length / this.columns));
    return Array.from({ length: rows }, (_, row) =>
      line.slice(row * this.columns, (row + 1) * this.columns),
    );
  }

  /** Makes the terminal narrower or wider; long lines wrap. */
  resize(columns: number): void {
    this.columns = columns;
    this.lines = this.lines.flatMap((line) => this.#wrapped(line));
  }
}

test("StatusBlock renews its lines in place, below what was printed", () => {
  const screen = new TestScreen();
  const block = new StatusBlock(screen);
  block.update(jobs);
  block.print("a log line");
  block.update(jobs.slice(0, 1));
  assert.deepEqual(screen.lines, ["a log line", ...statusLines(jobs.slice(0, 1), 80, 24), ""]);
  block.clear();
  assert.deepEqual(screen.lines, ["a log line", ""]);
});

test("StatusBlock leaves no remains when the terminal becomes narrower", () => {
  const screen = new TestScreen();
  const block = new StatusBlock(screen);
  block.update(jobs);
  screen.resize(30);
  block.resize();
  assert.deepEqual(screen.lines, [...statusLines(jobs, 30, 24), ""]);
});
