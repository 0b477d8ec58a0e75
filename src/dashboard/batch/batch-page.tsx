import { useLocation, useRoute } from "preact-iso";
import { useRef } from "preact/hooks";
import { BatchHead } from "./batch-head.tsx";
import { BatchMatrix } from "./batch-matrix.tsx";
import "./batch.css";
import { ChangeList } from "./change-list.tsx";
import {
  describeCell,
  type CellStyle,
  cellStyles,
  type MatrixView,
  matrixViews,
} from "./describe-cell.ts";
import type { ServiceChange } from "../../client/follow-logs.ts";
import type { Batch } from "../../contract/batches/batch.ts";
import { describeLimit } from "../../contract/jobs/describe-gate.ts";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { suiteAddress } from "../../contract/page-addresses.ts";
import { formatCount } from "../../contract/text/format-count.ts";
import { useLive } from "../live/use-live.ts";
import { service } from "../session/service.ts";
import { Icon } from "../shared/button.tsx";
import { describeCommit } from "../shared/format.ts";
import { type GateResult, lacksBaseline } from "../shared/gate-words.ts";
import { isGone, MissingPage } from "../shared/missing-page.tsx";
import { Age } from "../shared/page-head.tsx";
import { ToneSign } from "../shared/status.tsx";
import { Term } from "../shared/term.tsx";

/** A batch as a matrix of models and targets, live. */
export function BatchPage() {
  const id = useRoute().params["id"] ?? "";
  return (
    <main id="main">
      <LiveBatch key={id} id={id} />
    </main>
  );
}

const noSummaries: ReadonlyMap<string, JobSummary> = new Map();

function LiveBatch({ id }: { id: string }) {
  const concerns = ({ batch, job, deletedBatch }: ServiceChange) =>
    batch?.id === id || deletedBatch === id || job?.batchId === id;
  const live = { concerns, pauseMs: 1000 };
  const batch = useLive(() => service.call("getBatch", { params: { id } }), live);
  const { value: summaries = noSummaries, ...jobs } = useLive(() => loadSummaries(id), live);
  const reload = () => Promise.all([batch.reload(), jobs.reload()]);
  return (
    <>
      <MissingPage error={batch.error ?? jobs.error} noun="batch" list="/batches" retry={reload} />
      {batch.value && !isGone(batch.error) && (
        <>
          <BatchHead batch={batch.value} />
          <BatchFacts batch={batch.value} summaries={summaries} />
          <BatchSheet batch={batch.value} summaries={summaries} />
        </>
      )}
    </>
  );
}

/** The jobs of a batch with their figures, by their ids. */
async function loadSummaries(batch: string): Promise<ReadonlyMap<string, JobSummary>> {
  const summaries = new Map<string, JobSummary>();
  const pages = service.listPages("listJobSummaries", { query: { batch } });
  for await (const { jobs } of pages) for (const job of jobs) summaries.set(job.id, job);
  return summaries;
}

interface BatchSheetProps {
  readonly batch: Batch;
  readonly summaries: ReadonlyMap<string, JobSummary>;
}

function BatchSheet({ batch: { id, jobs, status }, summaries }: BatchSheetProps) {
  const wasLive = useRef(!isTerminal(status)).current;
  const view = parseMatrixView(useLocation().query["show"]);
  const shown = new Set(jobs.map((job) => describeCell(job, summaries.get(job.id), view).look));
  return (
    <div class={wasLive ? "is-watched" : ""}>
      <MatrixBar batchId={id} view={view} shown={shown} />
      <BatchMatrix jobs={jobs} summaries={summaries} view={view} />
      <div class="sheet">
        <ChangeList jobs={jobs} summaries={summaries} />
        <GateSummary summaries={summaries.values()} />
      </div>
    </div>
  );
}

function parseMatrixView(text: string | undefined): MatrixView {
  const names = Object.keys(matrixViews) as MatrixView[];
  return names.find((name) => name === text) ?? "summary";
}

interface MatrixBarProps {
  readonly batchId: string;
  readonly view: MatrixView;
  readonly shown: ReadonlySet<CellStyle>;
}

function MatrixBar({ batchId, view, shown }: MatrixBarProps) {
  return (
    <div class="filters">
      <nav class="tabs" aria-label="Figure">
        {Object.entries(matrixViews).map(([name, title]) => (
          <a
            key={name}
            href={`/batches/${batchId}?show=${name}`}
            aria-current={name === view ? "true" : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      <span class="grow" />
      <LookLegend shown={shown} />
    </div>
  );
}

function LookLegend({ shown }: Pick<MatrixBarProps, "shown">) {
  const entries = Object.entries(cellStyles).filter(([name]) => shown.has(name as CellStyle));
  return (
    <ul class="look-legend" aria-label="Signs">
      {entries.map(([name, { icon, words }]) => (
        <li key={name} class={`is-${name}`}>
          <span class="look-sign">
            <Icon name={icon} />
          </span>
          {words}
        </li>
      ))}
    </ul>
  );
}

/** How many of the jobs pass each gate. */
function GateSummary({ summaries }: { readonly summaries: Iterable<JobSummary> }) {
  const jobs = [...summaries].filter(({ gates }) => gates.length > 0);
  if (jobs.length === 0) return undefined;
  return (
    <section class="card c5">
      <header>
        <h2>
          <Term name="gate">Gates</Term>
        </h2>
        <span class="dim">of {jobs.length} jobs</span>
      </header>
      <ul class="list">
        {[...groupByGate(jobs)].map(([gate, results]) => (
          <GateCounts key={gate} gate={gate} results={results} />
        ))}
      </ul>
    </section>
  );
}

interface GateOfJob {
  readonly result: GateResult;
  readonly hasBaseline: boolean;
}

function groupByGate(jobs: readonly JobSummary[]): Map<string, GateOfJob[]> {
  const results = jobs.flatMap(({ gates, baseline }) =>
    gates.map((result) => ({ result, hasBaseline: baseline !== null })),
  );
  return Map.groupBy(results, ({ result }) => describeLimit(result));
}

function GateCounts({ gate, results }: { gate: string; results: readonly GateOfJob[] }) {
  const isOpen = ({ result, hasBaseline }: GateOfJob) => lacksBaseline(result, hasBaseline);
  const open = results.filter(isOpen).length;
  const missed = results.filter((each) => !each.result.passed && !isOpen(each));
  const failed = missed.filter(({ result }) => result.level === "fail").length;
  const warned = missed.length - failed;
  return (
    <li>
      <span class="grow">{gate}</span>
      {failed > 0 && <ToneSign tone="bad" icon="bad" words={`${failed} failed`} />}
      {warned > 0 && <ToneSign tone="warn" icon="warn" words={`${warned} warned`} />}
      {open > 0 && <span class="dim">{open} without a baseline</span>}
      {missed.length === 0 && open < results.length && (
        <ToneSign tone="calm" icon="check" words={open === 0 ? "all passed" : "others passed"} />
      )}
    </li>
  );
}

interface BatchFactsProps {
  readonly batch: Batch;
  readonly summaries: ReadonlyMap<string, JobSummary>;
}

/** What a batch is of, and what it is compared with; what it lacks is left out. */
function BatchFacts({ batch, summaries }: BatchFactsProps) {
  const listed = listBatchFacts(batch, describeBaselines(summaries.values()));
  const facts = Object.entries(listed).filter(([, text]) => text !== null);
  return (
    <dl class="facts">
      {facts.map(([name, text]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );
}

function listBatchFacts(batch: Batch, baselines: string | null) {
  const { suite, revision, jobs, gatesFailed, createdAt, id } = batch;
  const ended = jobs.filter(({ status }) => isTerminal(status)).length;
  return {
    Suite: suite && <a href={suiteAddress(suite)}>{suite}</a>,
    Commit: revision && describeCommit(revision),
    "Compared with": baselines,
    Jobs: `${ended} of ${jobs.length} finished`,
    Gates: sayGates(gatesFailed, ended),
    Created: <Age at={createdAt} />,
    Id: <span class="mono">{id}</span>,
  };
}

function sayGates(failed: number, ended: number): string {
  if (failed > 0) return `${formatCount(failed, "job fails", "jobs fail")} a gate`;
  return ended === 0 ? "not evaluated yet" : "none failed";
}

/** The commits that the jobs are compared with; null where there is none. */
function describeBaselines(summaries: Iterable<JobSummary>): string | null {
  const commits = [...summaries].flatMap(({ baseline }) => {
    return baseline === null ? [] : [describeCommit(baseline)];
  });
  const [first, ...others] = new Set(commits);
  if (first === undefined) return null;
  return others.length === 0 ? first : `${first} and ${others.length} more commits`;
}
