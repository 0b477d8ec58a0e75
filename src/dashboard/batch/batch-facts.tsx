import type { Batch } from "../../contract/jobs/batch.ts";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { suiteAddress } from "../shared/addresses.ts";
import { describeCommit } from "../shared/describe-commit.ts";
import { Age } from "../shared/time.tsx";

interface BatchFactsProps {
  readonly batch: Batch;
  readonly summaries: ReadonlyMap<string, JobSummary>;
}

/** What a batch is of, and what it is compared with; what it lacks is left out. */
export function BatchFacts({ batch, summaries }: BatchFactsProps) {
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
    Jobs: `${ended} of ${jobs.length} ended`,
    Gates: gatesFailed > 0 ? `${gatesFailed} jobs fail a gate` : "no job fails one",
    Created: <Age at={createdAt} />,
    Id: <span class="mono">{id}</span>,
  };
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
