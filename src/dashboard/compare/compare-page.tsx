import { useLocation } from "preact-iso";
import { CompareTable } from "./compare-table.tsx";
import { listAccuracyWays } from "./list-accuracy-ways.ts";
import { letterOf, type NamedJob, nameJobs } from "./name-jobs.ts";
import { ParetoCard } from "./pareto-chart.tsx";
import { axisFigures, type FigureName } from "./pareto.ts";
import { describeResult } from "./describe-result.ts";
import { isId } from "../../contract/id.ts";
import { explainWideInterval } from "../../contract/jobs/latency.ts";
import type { JobDetail } from "../../contract/jobs/job.ts";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { summarizeJob } from "../../contract/jobs/summarize-job.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { formatCount } from "../../contract/text/format-count.ts";
import { useLive } from "../live/use-live.ts";
import { service } from "../session/service.ts";
import { EmptyState, Loading } from "../shared/notice.tsx";
import { isGone, MissingPage } from "../shared/missing-page.tsx";
import { PageHead } from "../shared/page-head.tsx";
import { isShippable } from "../shared/verdict.ts";

/** As many as a table can show side by side. */
const mostJobs = 24;

/** Chosen jobs, or those of a batch or of a model, side by side; the address says which. */
export function ComparePage() {
  const { url } = useLocation();
  const { value, error, reload } = useLive(() => loadChosen(url), {
    of: [url],
    concerns: ({ job, deletedJob }) =>
      [job?.id, job?.batchId, deletedJob].some((id) => id && url.includes(id)),
    pauseMs: 1000,
  });
  return (
    <main id="main">
      <PageHead title={value === undefined ? "Compare" : sayCount(value.jobs.length)} />
      <MissingPage error={error} noun="job" list="/jobs" retry={reload} />
      {value === undefined && error === undefined && <Loading />}
      {value?.jobs.length === 0 && <NothingToCompare gone={value.gone} />}
      {value !== undefined && value.jobs.length > 0 && <Comparison {...value} />}
    </main>
  );
}

function sayCount(jobs: number): string {
  return `Compare ${formatCount(jobs, "job")}`;
}

function NothingToCompare({ gone }: Pick<ChosenJobs, "gone">) {
  return (
    <EmptyState title="Nothing to compare">
      {gone > 0 && <p class="soft">The jobs were deleted, or belong to another project.</p>}
      <p class="soft">Tick two or more jobs of a list, and choose Compare.</p>
      <a class="button" href="/jobs">
        Open the jobs
      </a>
    </EmptyState>
  );
}

interface ChosenJobs {
  readonly jobs: readonly NamedJob[];
  /** Whether there are more than can be shown. */
  readonly isCut: boolean;
  /** How many of the address are not there. */
  readonly gone: number;
}

async function loadChosen(url: string): Promise<ChosenJobs> {
  const { searchParams } = new URL(url, "http://page");
  const chosen = searchParams.getAll("job").filter((id) => isId("job", id));
  const batches = searchParams.getAll("batch").filter((id) => isId("batch", id));
  const ofBatches = (await Promise.all(batches.map(listJobsOf))).flat();
  const ids = [...new Set([...chosen, ...ofBatches])];
  const shown = ids.slice(0, mostJobs);
  const found = await Promise.all(shown.map(findJob));
  const jobs = found.filter((job) => job !== undefined);
  return {
    jobs: nameJobs(jobs),
    isCut: ids.length > shown.length,
    gone: found.length - jobs.length,
  };
}

/** Undefined where the job was deleted, which takes nothing from the others. */
async function findJob(id: string): Promise<JobDetail | undefined> {
  try {
    return await service.call("getJob", { params: { id } });
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

async function listJobsOf(id: string): Promise<string[]> {
  const { jobs } = await service.call("getBatch", { params: { id } });
  return jobs.map((job) => job.id);
}

function Comparison({ jobs, isCut, gone }: ChosenJobs) {
  const summaries = jobs.map(({ job }) => summarizeJob(job));
  const names = new Map(
    jobs.map(({ job, name }, index) => [job.id, `${letterOf(index)}, ${name}`]),
  );
  const models = new Set(summaries.map(({ model }) => model)).size;
  const ways = listAccuracyWays(summaries);
  const isAccuracyAlike = ways.length < 2;
  return (
    <div class="sheet">
      {isCut && <p class="c12 soft">The first {mostJobs} jobs are shown.</p>}
      {gone > 0 && (
        <p class="c12 soft">
          {formatCount(gone, "more job is", "more jobs are")} not there: deleted, or of another
          project.
        </p>
      )}
      {models > 1 && (
        <p class="c12 soft">
          The jobs are of {models} models: size and latency are relative to each one’s original.
        </p>
      )}
      {!isAccuracyAlike && (
        <p class="c12 soft">
          Accuracy was measured in ways that cannot be compared: {ways.join("; ")}.
        </p>
      )}
      <BestResults jobs={summaries} names={names} isAccuracyAlike={isAccuracyAlike} />
      <ParetoCard jobs={summaries} names={names} />
      <CompareTable jobs={jobs} />
    </div>
  );
}

interface BestResultsProps {
  readonly jobs: readonly JobSummary[];
  readonly names: ReadonlyMap<string, string>;
  readonly isAccuracyAlike: boolean;
}

const bestTitles = {
  size: "Smallest that passes",
  accuracy: "Most accurate that passes",
  latency: "Fastest that passes",
} as const;

/** The result to take for each figure, of those that may be shipped. */
function BestResults({ jobs, ...shown }: BestResultsProps) {
  const good = jobs.filter(isShippable);
  if (good.length === 0) {
    const [title, text] = explainNone(jobs);
    return (
      <section class="card c12 best-none">
        <b>{title}</b>
        <span class="soft">{text}</span>
      </section>
    );
  }
  return (
    <>
      {(Object.keys(bestTitles) as FigureName[]).map((figure) => (
        <BestResult key={figure} figure={figure} jobs={good} {...shown} />
      ))}
    </>
  );
}

/** Why none of the jobs has a result that may be shipped. */
function explainNone(jobs: readonly JobSummary[]): readonly [title: string, text: string] {
  const ended = jobs.filter(({ status }) => isTerminal(status));
  if (ended.length < jobs.length) {
    const all = formatCount(jobs.length, "job has", "jobs have");
    return ["No result passes its gates yet.", `${ended.length} of ${all} ended.`];
  }
  if (jobs.every(({ dryRun }) => dryRun)) {
    return ["These are dry runs, which have no result.", "Their sizes are predicted."];
  }
  if (jobs.every(({ status, dryRun }) => dryRun || status !== "Completed")) {
    return ["None of these jobs has a result.", "Their pages say why."];
  }
  return [
    "None of these results passes its gates.",
    "The chart shows how far each is from the limits.",
  ];
}

interface BestResultProps extends BestResultsProps {
  readonly figure: FigureName;
}

function BestResult({ figure, jobs, names, isAccuracyAlike }: BestResultProps) {
  const isComparable = figure !== "accuracy" || isAccuracyAlike;
  const job = isComparable ? findBest(figure, jobs) : undefined;
  return (
    <section class="card c4 best-result">
      <h2>{bestTitles[figure]}</h2>
      {job === undefined ? (
        <p class="dim">{isComparable ? "not measured" : "not measured alike"}</p>
      ) : (
        <>
          <a class="row-link" href={`/jobs/${job.id}`}>
            {names.get(job.id)}
          </a>
          <p class="soft">{describeResult(job)}</p>
          {figure === "latency" && <AsFast best={job} {...{ jobs, names }} />}
        </>
      )}
    </section>
  );
}

interface AsFastProps extends Pick<BestResultsProps, "jobs" | "names"> {
  readonly best: JobSummary;
}

/** Results that are not known to be slower than the fastest one. */
function AsFast({ best, jobs, names }: AsFastProps) {
  const high = best.figures.latencyRatioHigh;
  const tied = jobs.filter(({ id, figures: { latencyRatioLow } }) => {
    return id !== best.id && high !== null && latencyRatioLow !== null && latencyRatioLow <= high;
  });
  if (tied.length === 0) return undefined;
  const reason = [best, ...tied].some(isTimedTooBriefly)
    ? "some were timed in too few sessions for an interval"
    : "the intervals overlap";
  const letters = tied.map(({ id }) => names.get(id)?.split(",")[0]);
  return (
    <p class="soft">
      {letters.join(", ")} may be as fast: {reason}.
    </p>
  );
}

function isTimedTooBriefly({ figures }: JobSummary): boolean {
  const { latencyRatioLow: ratioLow, latencyRatioHigh: ratioHigh } = figures;
  if (ratioLow === null || ratioHigh === null) return false;
  return explainWideInterval({ ratioLow, ratioHigh }) !== undefined;
}

function findBest(figure: FigureName, jobs: readonly JobSummary[]): JobSummary | undefined {
  const { read, isLowerBetter } = axisFigures[figure];
  const rank = (job: JobSummary) => (isLowerBetter ? 1 : -1) * (read(job) ?? Infinity);
  return jobs.filter((job) => read(job) !== null).toSorted((a, b) => rank(a) - rank(b))[0];
}
