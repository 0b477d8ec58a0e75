import { type Signal, useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { batchLabel } from "./batch-labels.ts";
import type { JobList } from "./job-list.ts";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import type { TermName } from "../../contract/jobs/terms.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { formatCount } from "../../contract/text/format-count.ts";
import { describeBasis } from "../shared/accuracy-basis.ts";
import { toLatencyRatio } from "../shared/figures.ts";
import { describeCommit, shortJobName } from "../shared/format.ts";
import { listMissed } from "../shared/gate-words.ts";
import { Age, Duration } from "../shared/page-head.tsx";
import { LatencyMark, ProgressBar, ToneSign } from "../shared/status.tsx";
import { Term } from "../shared/term.tsx";
import { judgeJob } from "../shared/verdict.ts";

/** As the style sheet's `--row`. */
const rowPx = 40;
/** Rows from the end at which the next page is loaded. */
const loadAhead = 60;

/** Figures with the words that they are in. */
const columns = [
  { name: "size", title: "Size", term: undefined },
  { name: "accuracy", title: "Accuracy", term: "sqnr" },
  { name: "latency", title: "Latency, original = 1", term: "latency" },
  { name: "gates", title: "Gates", term: "gate" },
] as const satisfies readonly {
  readonly name: string;
  readonly title: string;
  readonly term: TermName | undefined;
}[];

interface JobTableProps {
  readonly list: JobList;
  readonly rows: readonly Signal<JobSummary>[];
  readonly selected: Signal<ReadonlySet<string>>;
}

/** The jobs; only those in the window are drawn. */
export function JobTable({ list, rows, selected }: JobTableProps) {
  const body = useRef<HTMLTableSectionElement>(null);
  const { start, end } = useWindowRows(body, { count: rows.length, rowPx });
  useEffect(() => {
    if (list.grows && end + loadAhead > rows.length) void list.load("more");
  }, [end, rows.length]);
  return (
    <div class="card wide">
      <table class="jobs" aria-rowcount={list.hasMore ? -1 : rows.length + 1}>
        <caption class="sr">Jobs, {list.order} first</caption>
        <JobTableHead />
        <tbody ref={body}>
          <Spacer px={start * rowPx} />
          {rows.slice(start, end).map((row, index) => (
            <JobRow key={row.peek().id} row={row} place={start + index + 1} selected={selected} />
          ))}
          <Spacer px={(rows.length - end) * rowPx} />
        </tbody>
      </table>
      <div class="foot">
        {sayLoaded(list, rows.length)}
        <span class="grow" />
        {list.accuracyWays > 1 &&
          `Accuracy was measured in ${list.accuracyWays} ways, each sorted by itself`}
      </div>
    </div>
  );
}

function sayLoaded(list: JobList, count: number): string {
  const jobs = count.toLocaleString("en");
  if (list.grows) return `${jobs} loaded, more when you scroll`;
  return list.hasMore
    ? `The newest ${jobs} jobs, sorted`
    : `${jobs} ${count === 1 ? "job" : "jobs"}`;
}

interface VisibleRows {
  readonly start: number;
  /** Row after the last one. */
  readonly end: number;
}

/** Rows that are drawn above and below those in view. */
const margin = 8;

/** Which rows of equal height are in the window: a long list draws only those. */
function useWindowRows(
  list: RefObject<HTMLElement | null>,
  { count, rowPx }: { readonly count: number; readonly rowPx: number },
): VisibleRows {
  const visible = useSignal<VisibleRows>({ start: 0, end: Math.min(count, 50) });
  const measure = () => {
    const top = -(list.current?.getBoundingClientRect().top ?? 0);
    const start = Math.max(0, Math.floor(top / rowPx) - margin);
    const end = Math.ceil((top + window.innerHeight) / rowPx) + margin;
    const shown = visible.peek();
    if (shown.start !== start || shown.end !== end) visible.value = { start, end };
  };
  useEffect(() => {
    measure();
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, [count]);
  return { start: Math.min(visible.value.start, count), end: Math.min(visible.value.end, count) };
}

function JobTableHead() {
  return (
    <thead>
      <tr>
        <th class="pick phone-off">
          <span class="sr">Selected</span>
        </th>
        <th class="col-status">Status</th>
        <th class="col-model">Model, target, recipe</th>
        {columns.map((column) => (
          <th key={column.name} class={`phone-off col-${column.name}`}>
            <Term name={column.term}>{column.title}</Term>
          </th>
        ))}
        <th class="num col-time">Time</th>
        <th class="phone-off col-batch">Batch, commit</th>
        <th class="phone-off col-by">By</th>
        <th class="num phone-off col-ended">Ended</th>
      </tr>
    </thead>
  );
}

/** Stands for rows that are not drawn: one cell, since narrow windows hide some columns. */
function Spacer({ px }: { readonly px: number }) {
  if (px === 0) return undefined;
  return (
    <tr aria-hidden="true" class="spacer">
      <td style={{ height: `${px}px` }} />
    </tr>
  );
}

function toggleSelected(selected: ReadonlySet<string>, id: string): ReadonlySet<string> {
  return selected.has(id)
    ? new Set([...selected].filter((each) => each !== id))
    : new Set([...selected, id]);
}

interface JobRowProps {
  readonly row: Signal<JobSummary>;
  /** From 1. */
  readonly place: number;
  readonly selected: Signal<ReadonlySet<string>>;
}

function JobRow({ row, place, selected }: JobRowProps) {
  const job = row.value;
  const { id, status, startedAt, createdAt, finishedAt, createdBy } = job;
  return (
    // The head is the first row.
    <tr aria-rowindex={place + 1} aria-selected={selected.value.has(id)}>
      <PickCell job={job} selected={selected} />
      <td class="two">
        <ToneSign {...judgeJob(job)} words={status} />
        {job.warnings > 0 && <small class="phone-off status-note">{countWarnings(job)}</small>}
      </td>
      <JobName job={job} />
      {status === "Completed" ? <Figures job={job} /> : <ProgressCell job={job} />}
      <td class="num col-time">
        {startedAt === null && finishedAt !== null ? (
          <span class="dim">not run</span>
        ) : (
          <Duration from={startedAt ?? createdAt} to={finishedAt} />
        )}
      </td>
      <BatchCell id={job.batchId} />
      <td class="soft phone-off col-by cut">{createdBy?.name}</td>
      <td class="num dim phone-off">{finishedAt !== null && <Age at={finishedAt} />}</td>
    </tr>
  );
}

interface JobProps {
  readonly job: JobSummary;
}

/** The batch of a job, and the commit that it is of. */
function BatchCell({ id }: { readonly id: string | null }) {
  if (id === null) return <td class="phone-off col-batch" />;
  const { name = id, revision } = batchLabel(id).value ?? {};
  return (
    <td class="phone-off col-batch two cut" title={name}>
      <a href={`/batches/${id}`}>{name}</a>
      {revision && <small>{describeCommit(revision)}</small>}
    </td>
  );
}

function PickCell({ job: { id, name }, selected }: Pick<JobRowProps, "selected"> & JobProps) {
  return (
    <td class="pick phone-off">
      <input
        type="checkbox"
        aria-label={`Select ${name}`}
        checked={selected.value.has(id)}
        onChange={() => (selected.value = toggleSelected(selected.value, id))}
      />
    </td>
  );
}

function JobName({ job }: JobProps) {
  const { tone, words } = judgeJob(job);
  const isMissed = job.status === "Completed" && tone === "bad";
  return (
    <td class="two cut" title={job.name}>
      <a class="row-link" href={`/jobs/${job.id}`}>
        {shortJobName(job)}
      </a>
      <small>
        {job.target} · {job.scheme}
        {job.dryRun && " · dry run"}
        {job.warnings > 0 && <span class="phone-only"> · {countWarnings(job)}</span>}
        {isMissed && <span class="phone-only bad"> · {words.replace(/^Completed, /, "")}</span>}
      </small>
    </td>
  );
}

function countWarnings({ warnings }: JobSummary): string {
  return formatCount(warnings, "warning");
}

/** The progress of a job that has no figures yet, or why it has none. */
function ProgressCell({ job }: JobProps) {
  const { fraction, message } = job.progress;
  const isWorking = !isTerminal(job.status) && job.status !== "Pending";
  return (
    <td colSpan={columns.length} class="soft phone-off">
      {isWorking ? (
        <div class="doing">
          <ProgressBar fraction={fraction} label={`Progress of ${job.name}`} />
          <span class="num">{Math.floor(100 * fraction)} %</span>
          <span>{message}</span>
        </div>
      ) : (
        job.statusMessage
      )}
    </td>
  );
}

function Figures({ job }: JobProps) {
  const { figures, accuracyBasis } = job;
  const { resultBytes, sizeRatio, sqnrDb } = figures;
  const latency = toLatencyRatio(figures);
  return (
    <>
      <td class="num phone-off">
        {resultBytes !== null && formatBytes(resultBytes)}{" "}
        {sizeRatio !== null && <span class="dim">{Math.round(100 * sizeRatio)} %</span>}
      </td>
      <td class="num phone-off" title={accuracyBasis && describeBasis(accuracyBasis)}>
        {sqnrDb?.toFixed(1)} {sqnrDb !== null && <span class="dim">dB</span>}
      </td>
      <td class="num phone-off">
        {latency ? <LatencyMark latency={latency} /> : <span class="dim">not measured</span>}
      </td>
      <td class="phone-off">
        <GateCount job={job} />
      </td>
    </>
  );
}

function GateCount({ job }: JobProps) {
  const { gates } = job;
  if (gates.length === 0) return <span class="dim">none</span>;
  const missed = listMissed(job);
  const failed = missed.filter(({ level }) => level === "fail").length;
  const warned = missed.length - failed;
  if (failed > 0) return <ToneSign tone="bad" icon="close" words={`${failed} failed`} />;
  if (warned > 0) return <ToneSign tone="warn" icon="warn" words={`${warned} warned`} />;
  const passed = gates.filter((gate) => gate.passed).length;
  if (passed === 0) return <span class="dim">no baseline yet</span>;
  return <ToneSign tone="calm" icon="check" words={`${passed} of ${passed}`} />;
}
