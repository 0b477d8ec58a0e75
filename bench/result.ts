import { mkdir, writeFile } from "node:fs/promises";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";

/** One figure of ours beside a peer's from the same run. */
export interface BenchRow {
  readonly what: string;
  readonly unit: string;
  readonly ours: number;
  /** Null if there is none, or it failed at the work; the bar is a limit then. */
  readonly peer: number | null;
  /** How the ratio must come out, for instance `ours <= peer / 3`. */
  readonly bar: string;
  /** Null for a figure without a bar. */
  readonly met: boolean | null;
}

/** A figure that has a limit and no peer. */
export function limitRow(what: string, unit: string, value: number, limit: number): BenchRow {
  return { what, unit, ours: value, peer: null, bar: `<= ${limit}`, met: value <= limit };
}

export function leastRow(what: string, unit: string, value: number, least: number): BenchRow {
  return { what, unit, ours: value, peer: null, bar: `>= ${least}`, met: value >= least };
}

/** Prints the rows as a table and writes them to `bench/results/NAME.json`. */
export async function reportBench(name: string, rows: readonly BenchRow[]): Promise<void> {
  const full = rows.map(({ what, unit, ours, peer, bar, met }) => ({
    what,
    unit,
    ours,
    peer,
    ratio: peer === null ? null : ours / peer,
    bar,
    met,
  }));
  console.table(
    full.map((row) => ({
      ...row,
      ours: Number(row.ours.toPrecision(4)),
      peer: row.peer === null ? "none" : Number(row.peer.toPrecision(4)),
      ratio: row.ratio === null ? "" : Number(row.ratio.toPrecision(3)),
    })),
  );
  const barred = rows.filter(({ met }) => met !== null);
  const met = barred.filter((row) => row.met === true);
  process.stdout.write(`${met.length} of ${barred.length} bars are met\n`);
  const folder = join(import.meta.dirname, "results");
  await mkdir(folder, { recursive: true });
  const [processor] = cpus();
  const memoryGiB = Math.round(totalmem() / 2 ** 30);
  const machine = `${cpus().length} × ${processor?.model ?? "unknown"}, ${memoryGiB} GiB`;
  const result = { name, date: new Date().toISOString(), machine, rows: full };
  await writeFile(join(folder, `${name}.json`), `${JSON.stringify(result, undefined, 2)}\n`);
}
