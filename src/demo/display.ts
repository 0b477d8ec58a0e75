import type { WriteStream } from "node:tty";
import { type JobProgress, StatusBlock } from "./status-block.ts";

/** Where the demo shows what happens. */
export interface Display {
  /** Columns for what is printed at the end. */
  readonly columns: number;
  print(line: string): void;
  update(jobs: readonly JobProgress[]): void;
  close(): void;
}

/** Lines with the progress of all jobs below them on a terminal; lines alone elsewhere. */
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
