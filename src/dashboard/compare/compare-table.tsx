import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { letterOf, type NamedJob } from "./name-jobs.ts";
import { accuracyBasis } from "../../contract/jobs/comparability.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { explainWideInterval, formatInterval, type Latency } from "../../contract/jobs/latency.ts";
import type { TermName } from "../../contract/jobs/terms.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { formatDecibels, formatTimes } from "../../contract/text/format-figure.ts";
import { compareAddress } from "../shared/addresses.ts";
import { Button, Icon } from "../shared/button.tsx";
import { formatDuration, formatMs } from "../shared/format.ts";
import { listMissed, sayGate } from "../shared/gate-words.ts";
import { listJobFacts } from "../shared/job-facts.ts";
import { ToneSign } from "../shared/status.tsx";
import { Term } from "../shared/term.tsx";
import { judgeJob } from "../shared/verdict.ts";

interface CompareTableProps {
  readonly jobs: readonly NamedJob[];
}

/** Jobs side by side: their figures, and what of their requests differs. */
export function CompareTable({ jobs }: CompareTableProps) {
  const isWhole = useSignal(false);
  const facts = listFacts(jobs.map(({ job }) => job));
  const equal = facts.filter(({ differs }) => !differs);
  const shown = isWhole.value ? facts : facts.filter(({ differs }) => differs);
  return (
    <section class="card c12">
      <header>
        <h2>Side by side</h2>
        <span class="grow" />
        {equal.length > 0 && (
          <Button look="quiet" onClick={() => (isWhole.value = !isWhole.value)}>
            {isWhole.value ? "Show only what differs" : `Show ${equal.length} equal fields`}
          </Button>
        )}
      </header>
      <div class="scrolled" tabIndex={0} role="region" aria-label="Jobs side by side">
        <table class="compared">
          <CompareHead jobs={jobs} />
          <FigureRows jobs={jobs} />
          <tbody>
            {shown.map(({ name, values, differs }) => (
              <tr key={name} class={differs ? "differs" : undefined}>
                <th scope="row">{name}</th>
                {values.map((value, index) => (
                  <td key={jobs[index]?.job.id} class="mono">
                    {value}
                  </td>
                ))}
              </tr>
            ))}
            {shown.length === 0 && (
              <tr>
                <td colSpan={jobs.length + 1} class="dim">
                  Same recipe, machine and runtime
                </td>
              </tr>
            )}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function CompareHead({ jobs }: CompareTableProps) {
  const ids = jobs.map(({ job }) => job.id);
  return (
    <thead>
      <tr>
        <th>Job</th>
        {jobs.map(({ job, name }, index) => (
          <th key={job.id}>
            <span class="compared-job">
              <b class="letter">{letterOf(index)}</b>
              <a class="row-link" href={`/jobs/${job.id}`}>
                {name}
              </a>
              {jobs.length > 2 && (
                <a
                  class="without"
                  href={compareAddress(ids.filter((id) => id !== job.id))}
                  aria-label={`Compare without ${letterOf(index)}, ${name}`}
                >
                  <Icon name="close" />
                </a>
              )}
            </span>
          </th>
        ))}
      </tr>
    </thead>
  );
}

interface FigureRow {
  readonly title: string;
  readonly term?: TermName;
  readonly read: (job: Job) => number | null | undefined;
  readonly format: (value: number, job: Job) => string;
  /** Undefined where neither is better. */
  readonly best?: "least" | "most";
  /** Whether figures of different models say nothing of each other. */
  readonly isOfModel?: boolean;
  /** Whether the best figure is known to be better than the others; by default it is. */
  readonly isSure?: (best: Job, others: readonly Job[]) => boolean;
}

const figureRows: readonly FigureRow[] = [
  {
    title: "Size",
    read: ({ telemetry }) => telemetry.size?.resultBytes,
    format: (bytes, { telemetry }) =>
      `${formatBytes(bytes)}, ${Math.round(100 * (telemetry.size?.ratio ?? 1))} %` +
      (telemetry.size?.predicted ? ", predicted" : ""),
    best: "least",
    isOfModel: true,
    isSure: ({ telemetry }) => !telemetry.size?.predicted,
  },
  {
    title: "Accuracy (SQNR)",
    term: "sqnr",
    read: ({ telemetry }) => telemetry.accuracy?.sqnrDb,
    format: formatDecibels,
    best: "most",
    isSure: isMeasuredAsOthers,
  },
  {
    title: "Cosine similarity",
    term: "cosine",
    read: ({ telemetry }) => telemetry.accuracy?.cosine,
    format: (cosine) => cosine.toFixed(4),
    best: "most",
    isSure: isMeasuredAsOthers,
  },
  {
    title: "Latency, relative to the original",
    term: "latency",
    read: ({ telemetry }) => telemetry.latency?.ratio,
    format: (ratio, { telemetry }) =>
      [formatTimes(ratio), ...describeTimes(telemetry.latency)].join(", "),
    best: "least",
    isSure: isKnownToBeFastest,
  },
  {
    title: "Peak memory",
    read: ({ telemetry }) => telemetry.memory?.resultPeakBytes,
    format: formatBytes,
    best: "least",
    isOfModel: true,
  },
  {
    title: "GPU memory",
    read: ({ telemetry }) => telemetry.memory?.resultGpuBytes,
    format: formatBytes,
    best: "least",
    isOfModel: true,
  },
  {
    title: "Weights changed",
    read: ({ telemetry }) => telemetry.weights?.quantized,
    format: (count, { telemetry }) => `${count} of ${telemetry.weights?.total ?? count}`,
  },
  {
    title: "Run time",
    read: ({ startedAt, finishedAt }) =>
      startedAt !== null && finishedAt !== null
        ? Date.parse(finishedAt) - Date.parse(startedAt)
        : undefined,
    format: formatDuration,
  },
];

/** Whether the accuracy of all was measured alike. */
function isMeasuredAsOthers(best: Job, others: readonly Job[]): boolean {
  const bases = [best, ...others].flatMap(({ telemetry: { accuracy } }) =>
    accuracy === undefined ? [] : accuracyBasis(accuracy),
  );
  return new Set(bases).size === 1;
}

/** Whether the interval of a job's latency ends before those of the others begin. */
function isKnownToBeFastest(best: Job, others: readonly Job[]): boolean {
  const { ratio = Infinity, ratioHigh = ratio } = best.telemetry.latency ?? {};
  return others.every(({ telemetry: { latency } }) => {
    return latency === undefined || (latency.ratioLow ?? latency.ratio) > ratioHigh;
  });
}

function FigureRows({ jobs }: CompareTableProps) {
  const rows = figureRows.filter(({ read }) => jobs.some(({ job }) => isKnown(read(job))));
  return (
    <tbody>
      <tr>
        <th scope="row">Result</th>
        {jobs.map(({ job }) => (
          <td key={job.id}>
            <ToneSign {...judgeJob(job)} />
          </td>
        ))}
      </tr>
      <tr>
        <th scope="row">Gates missed</th>
        {jobs.map(({ job }) => (
          <td key={job.id} class="wraps">
            {sayMissed(job)}
          </td>
        ))}
      </tr>
      {rows.map((row) => (
        <FigureCells key={row.title} row={row} jobs={jobs} />
      ))}
    </tbody>
  );
}

function sayMissed(job: Job): ComponentChildren {
  if (job.gates.length === 0) return <span class="dim">no gates</span>;
  const missed = listMissed(job);
  if (missed.length === 0) return <span class="dim">none</span>;
  return missed.map((gate) => <div key={gate.gate}>{sayGate(gate, job.baseline?.branch)}</div>);
}

function isKnown(value: number | null | undefined): value is number {
  return value !== null && value !== undefined;
}

function FigureCells({ row, jobs }: CompareTableProps & { readonly row: FigureRow }) {
  const { title, term, read, format, isOfModel = false, isSure = () => true } = row;
  const models = new Set(jobs.map(({ job }) => job.model.name)).size;
  const best = isOfModel && models > 1 ? undefined : row.best;
  const measured = jobs.flatMap(({ job }) => {
    const value = read(job);
    return isKnown(value) ? [{ value, text: format(value, job) }] : [];
  });
  // Figures that are shown alike are equal to people.
  const differ = new Set(measured.map(({ text }) => text)).size > 1;
  const values = measured.map(({ value }) => value);
  const wanted = best === "least" ? Math.min(...values) : Math.max(...values);
  const wantedText = measured.find(({ value }) => value === wanted)?.text;
  return (
    <tr>
      <th scope="row">
        <Term name={term}>{title}</Term>
      </th>
      {jobs.map(({ job }) => {
        const value = read(job);
        if (!isKnown(value))
          return (
            <td key={job.id} class="dim">
              not measured
            </td>
          );
        const others = jobs.flatMap((each) => (each.job === job ? [] : each.job));
        const text = format(value, job);
        const isBest = best !== undefined && differ && text === wantedText && isSure(job, others);
        return (
          <td key={job.id}>
            {text}
            {isBest && <span class="best">best</span>}
          </td>
        );
      })}
    </tr>
  );
}

const machineFields = ["processor", "runtime", "executionProvider", "threads", "model file"];

interface ComparedFact {
  readonly name: string;
  readonly values: readonly string[];
  readonly differs: boolean;
}

/** The interval of a ratio, and what the result's median is. */
function describeTimes(latency: Latency | undefined): string[] {
  if (latency === undefined) return [];
  const { ratioLow, ratioHigh, result } = latency;
  const isKnown = ratioLow !== undefined && ratioHigh !== undefined;
  const interval = isKnown ? [formatInterval(ratioLow, ratioHigh)] : [];
  const wide = explainWideInterval(latency);
  return [...(wide === undefined ? interval : [wide]), formatMs(result.p50Ms)];
}

function listFacts(jobs: readonly Job[]): ComparedFact[] {
  const all = jobs.map((job) => new Map([["target", job.target], ...listJobFacts(job)]));
  const names = [...new Set(all.flatMap((facts) => [...facts.keys()]))];
  return names.map((name) => {
    const values = all.map((facts) => facts.get(name) ?? "none");
    // A job that failed was measured on no machine, which is no difference.
    const known = machineFields.includes(name) ? values.filter((each) => each !== "none") : values;
    return { name, values, differs: new Set(known).size > 1 };
  });
}
