import type { Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { describeRecipe } from "../shared/describe-recipe.ts";
import type { SuiteBatch, SuiteHistory } from "../../contract/batches/suite.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { formatDecibels, formatTimes } from "../../contract/text/format-figure.ts";
import { describeBasis } from "../shared/accuracy-basis.ts";
import { describeCommit } from "../shared/format.ts";
import { Status } from "../shared/status.tsx";
import { Age } from "../shared/page-head.tsx";
import { findWithFormer, listTargets } from "./suite-lines.ts";

interface CommitTableProps {
  readonly history: SuiteHistory;
  readonly chosen: Signal<number | undefined>;
}

/** The points of the charts as a table, the newest first, with what each belongs to. */
export function CommitTable({ history, chosen }: CommitTableProps) {
  const targets = listTargets(history);
  const places = [...history.batches.keys()].toReversed();
  return (
    <section class="card c12">
      <header>
        <h2>Commits</h2>
        <span class="dim">{history.batches.length} batches, newest first</span>
      </header>
      <div class="scrolled" tabIndex={0} role="region" aria-label="Commits and figures">
        <table class="commits">
          <CommitHead targets={targets} />
          <tbody>
            {places.map((place) => (
              <CommitRow key={place} {...{ history, chosen, targets, place }} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function CommitHead({ targets }: { readonly targets: readonly string[] }) {
  return (
    <thead>
      <tr>
        {["Commit", "Batch", ...targets, "Created"].map((title) => (
          <th key={title}>{title}</th>
        ))}
      </tr>
    </thead>
  );
}

interface CommitRowProps extends CommitTableProps {
  readonly targets: readonly string[];
  readonly place: number;
}

function CommitRow({ history, chosen, targets, place }: CommitRowProps) {
  const row = useRef<HTMLTableRowElement>(null);
  const batch = history.batches[place];
  const isChosen = chosen.value === place;
  useEffect(() => {
    if (isChosen) row.current?.scrollIntoView({ block: "nearest" });
  }, [isChosen]);
  if (batch === undefined) return undefined;
  return (
    <tr ref={row} aria-selected={isChosen} onClick={() => (chosen.value = place)}>
      <td>
        <CommitLink batch={batch} />
      </td>
      <td>
        <BatchLinks batch={batch} />
      </td>
      {targets.map((target) => (
        <td key={target}>
          <JobFigures {...findWithFormer(history, { place, target })} />
        </td>
      ))}
      <td class="dim">
        <Age at={batch.createdAt} />
      </td>
    </tr>
  );
}

function BatchLinks({ batch: { id, check } }: { readonly batch: SuiteBatch }) {
  const checkUrl = check?.url ?? null;
  return (
    <>
      <a href={`/batches/${id}`} class="row-link">
        Batch
      </a>
      {checkUrl !== null && " · "}
      {checkUrl !== null && (
        <a href={checkUrl} rel="noreferrer">
          Check run
        </a>
      )}
    </>
  );
}

function CommitLink({ batch: { revision, check } }: { readonly batch: SuiteBatch }) {
  if (revision === null) return <span class="dim">no commit</span>;
  const text = describeCommit(revision);
  if (check === null) return <span class="mono">{text}</span>;
  return (
    <a class="mono" href={check.commitUrl} rel="noreferrer">
      {text}
    </a>
  );
}

type SuiteJob = SuiteHistory["jobs"][number];

interface JobFiguresProps {
  readonly job: SuiteJob | undefined;
  /** The one before. */
  readonly former: SuiteJob | undefined;
}

function JobFigures({ job, former }: JobFiguresProps) {
  if (job === undefined) return <span class="dim">not run</span>;
  const recipe = describeRecipe(job);
  const isOther = former !== undefined && describeRecipe(former) !== recipe;
  const basis = job.accuracyBasis;
  const formerBasis = former?.accuracyBasis ?? basis;
  const isBasisOther = basis !== undefined && basis !== formerBasis;
  const { resultBytes, sqnrDb, latencyRatio } = job.figures;
  const parts = [
    resultBytes !== null && formatBytes(resultBytes),
    sqnrDb !== null && formatDecibels(sqnrDb),
    latencyRatio !== null && formatTimes(latencyRatio),
  ].filter((part) => part !== false);
  return (
    <span class="two">
      <a href={`/jobs/${job.id}`} class={job.gatesFailed ? "bad" : ""}>
        {parts.length === 0 ? <Status status={job.status} /> : parts.join(" · ")}
        {job.gatesFailed && " fails a gate"}
      </a>
      <small class={isOther ? "warn" : ""}>{isOther ? `now ${recipe}` : recipe}</small>
      {isBasisOther && <small class="warn">accuracy now {describeBasis(basis)}</small>}
    </span>
  );
}
