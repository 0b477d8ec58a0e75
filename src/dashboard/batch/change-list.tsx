import { useSignal } from "@preact/signals";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { jobAddress } from "../shared/addresses.ts";
import { Button } from "../shared/button.tsx";
import { Icon } from "../shared/icon.tsx";
import { type ListedChange, listBatchChanges } from "./list-batch-changes.ts";
import { type BatchJob, looks } from "./look-at-job.ts";

const shownAtFirst = 8;

interface ChangeListProps {
  readonly jobs: readonly BatchJob[];
  readonly summaries: ReadonlyMap<string, JobSummary>;
}

/** The jobs that differ from their baselines or miss a gate. */
export function ChangeList({ jobs, summaries }: ChangeListProps) {
  const isWhole = useSignal(false);
  const changes = listBatchChanges(jobs, summaries);
  const shown = isWhole.value ? changes : changes.slice(0, shownAtFirst);
  return (
    <section class="card c7">
      <header>
        <h2>What changed</h2>
        {changes.length > 0 && <span class="dim">worst first</span>}
        <span class="grow" />
        {shown.length < changes.length && (
          <Button look="quiet" onClick={() => (isWhole.value = true)}>
            All {changes.length}
          </Button>
        )}
      </header>
      {changes.length === 0 && <p class="card-note">Nothing that a person has to look at.</p>}
      <ul class="list">
        {shown.map((change) => (
          <ChangeRow key={change.job.id} change={change} />
        ))}
      </ul>
    </section>
  );
}

function ChangeRow({
  change: { job, look, detail, isCompared },
}: {
  readonly change: ListedChange;
}) {
  const { icon, words } = looks[look];
  const name = `${job.model} for ${job.target}`;
  return (
    <li class={`is-${look}`}>
      <span class="look-sign" title={words}>
        <Icon name={icon} />
        <span class="sr">{words}</span>
      </span>
      <span class="two grow">
        <a href={jobAddress(job.id)}>{name}</a>
        <small class="clamped" title={detail}>
          {detail}
        </small>
      </span>
      {isCompared && (
        <a class="more" href={jobAddress(job.id, "baseline")} aria-label={`Compare ${name}`}>
          Compare
        </a>
      )}
    </li>
  );
}
