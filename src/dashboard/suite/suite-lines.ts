import type { SuiteHistory } from "../../contract/jobs/suite.ts";
import type { Palette } from "../shared/palette.ts";

type Job = SuiteHistory["jobs"][number];
type FigureName = keyof Job["figures"];

export interface FigureChart {
  readonly title: string;
  readonly format: (value: number) => string;
  /** One for each target: a value for each batch, null if there is none. */
  readonly lines: readonly (readonly (number | null)[])[];
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
  ["latencyRatio", "Latency, relative to the original", (value) => `×${Number(value.toFixed(3))}`],
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
    const lines = targets.map((target) =>
      history.batches.map(({ id }) => byPlace.get(`${id} ${target}`)?.figures[name] ?? null),
    );
    const isMeasured = lines.some((line) => line.some((value) => value !== null));
    return isMeasured ? [{ title, format, lines }] : [];
  });
}

export function indexJobs({ jobs }: Pick<SuiteHistory, "jobs">): ReadonlyMap<string, Job> {
  return new Map(jobs.map((job) => [`${job.batchId} ${job.target}`, job]));
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
