import type { WriteStream } from "node:tty";
import { StatusBlock } from "./status-block.ts";
import type { JobProgress } from "./status-lines.ts";

/** The output of the demo. */
export interface Display {
  /** Width of the result table. */
  readonly columns: number;
  print(line: string): void;
  update(jobs: readonly JobProgress[]): void;
  close(): void;
}

/** On a terminal lines and, below them, the progress of all jobs; elsewhere only lines. */
export function createDisplay(
  output: WriteStream | NodeJS.WritableStream,
  isTerminal: boolean,
): Display {
  if (!isTerminal || !("columns" in output)) {
    return {
      columns: Infinity,
      print: (line) => void output.write(`${line}\n`),
      update: () => {},
      close: () => {},
    };
  }
  const block = new StatusBlock(output);
  const resize = () => block.resize();
  output.on("resize", resize);
  return {
    get columns() {
      return output.columns;
    },
    print: (line) => block.print(line),
    update: (jobs) => block.update(jobs),
    close() {
      output.off("resize", resize);
      block.clear();
    },
  };
}
