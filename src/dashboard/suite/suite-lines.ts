import type { SuiteHistory } from "../../contract/batches/suite.ts";
import { formatTimes } from "../../contract/text/format-figure.ts";
import type { GateName } from "../../contract/jobs/gate-table.ts";
import type { Palette } from "../shared/palette.ts";
import { listSuiteWays } from "./list-suite-ways.ts";

type Job = SuiteHistory["jobs"][number];
type FigureName = keyof Job["figures"];

export interface FigureChart {
  readonly title: string;
  readonly format: (value: number) => string;
  /** One for each target: a value for each batch, null if there is none. */
  readonly lines: readonly Line[];
  /** The newest limit of the figure, where jobs have one. */
  readonly limit: number | undefined;
  /** In which ways the figure was measured, where there are several: its course says nothing. */
  readonly ways: readonly string[];
}

/** A target's figures. */
interface Line {
  readonly target: string;
  readonly values: readonly (number | null)[];
  /** Ends of their 95 % intervals, where they have some. */
  readonly lows: readonly (number | null)[];
  readonly highs: readonly (number | null)[];
}

const figures: readonly (readonly [
  name: FigureName,
  title: string,
  format: (value: number) => string,
])[] = [
  [
    "sizeRatio",
    "Size, relative to the original",
    (value) => `${Number((100 * value).toFixed(1))} %`,
  ],
  ["sqnrDb", "Accuracy, SQNR", (value) => `${Number(value.toFixed(1))} dB`],
  ["latencyRatio", "Latency, relative to the original", (value) => formatTimes(value, 3)],
  ["latencyMs", "Latency, median", (value) => `${Number(value.toPrecision(3))} ms`],
  ["cosine", "Accuracy, cosine", (value) => String(Number(value.toFixed(4)))],
];

/** The targets of a suite's jobs, in their order. */
export function listTargets({ jobs }: Pick<SuiteHistory, "jobs">): string[] {
  return [...new Set(jobs.map(({ target }) => target))];
}

export function listCharts(history: SuiteHistory): FigureChart[] {
  const targets = listTargets(history);
  const byPlace = indexJobs(history);
  return figures.flatMap(([name, title, format]) => {
    const lines = targets.map((target) => {
      const read = (figure: FigureName | undefined) =>
        history.batches.map(({ id }) => {
          return figure === undefined
            ? null
            : (byPlace.get(`${id} ${target}`)?.figures[figure] ?? null);
        });
      const [low, high] = name === "latencyRatio" ? latencyEnds : [];
      return { target, values: read(name), lows: read(low), highs: read(high) };
    });
    const isMeasured = lines.some(({ values }) => values.some((value) => value !== null));
    if (!isMeasured) return [];
    const ways = name === "sqnrDb" || name === "cosine" ? listSuiteWays(history) : [];
    return [{ title, format, lines, limit: findLimit(history, name), ways }];
  });
}

const latencyEnds = ["latencyRatioLow", "latencyRatioHigh"] as const;

const limitedBy: Partial<Record<FigureName, GateName>> = {
  sizeRatio: "maxSizeRatio",
  sqnrDb: "minSqnrDb",
  cosine: "minCosine",
  latencyRatio: "maxLatencyRatio",
};

function findLimit({ jobs }: SuiteHistory, figure: FigureName): number | undefined {
  const gates = jobs.flatMap((job) => job.gates);
  return gates.findLast(({ gate }) => gate === limitedBy[figure])?.limit;
}

/** The branches of the batches, the one with the most first; commits of no branch are left out. */
export function listBranches({ batches }: Pick<SuiteHistory, "batches">): string[] {
  const counts = new Map<string, number>();
  for (const { revision } of batches) {
    const branch = revision?.branch;
    if (branch !== undefined) counts.set(branch, (counts.get(branch) ?? 0) + 1);
  }
  return [...counts].toSorted(([, a], [, b]) => b - a).map(([branch]) => branch);
}

/** The history of a branch: others are no course of the same thing. */
export function ofBranch(history: SuiteHistory, branch: string | undefined): SuiteHistory {
  if (branch === undefined) return history;
  return { ...history, batches: history.batches.filter((b) => b.revision?.branch === branch) };
}

function indexJobs({ jobs }: Pick<SuiteHistory, "jobs">): ReadonlyMap<string, Job> {
  return new Map(jobs.map((job) => [`${job.batchId} ${job.target}`, job]));
}

/** The job of a target in the batch at a place, and that of the last batch before that has one. */
export function findWithFormer(
  { batches, jobs }: Pick<SuiteHistory, "batches" | "jobs">,
  { place, target }: { readonly place: number; readonly target: string },
) {
  const byPlace = indexJobs({ jobs });
  const at = ({ id }: { readonly id: string }) => byPlace.get(`${id} ${target}`);
  const batch = batches[place];
  const former = batches.slice(0, place).findLast((each) => at(each) !== undefined);
  return { job: batch && at(batch), former: former && at(former) };
}

const colours = ["accent", "warn", "good", "better", "wait"] as const;
const dashes = [[], [7, 4], [2, 3]] as const;

/** How the line of a target looks: colours repeat with other dashes. */
export function lineLook(index: number): { colour: keyof Palette; dash: readonly number[] } {
  return {
    colour: colours[index % colours.length] ?? "accent",
    dash: dashes[Math.floor(index / colours.length) % dashes.length] ?? [],
  };
}
