import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { findWeightFiles, sayWeightFiles } from "../../contract/jobs/weight-files.ts";
import { describeResult } from "../compare/describe-result.ts";
import { jobAddress } from "../../contract/page-addresses.ts";
import { useLive } from "../live/use-live.ts";
import { service } from "../session/service.ts";
import { artifactAddress } from "../shared/addresses.ts";
import { Icon } from "../shared/button.tsx";
import { findDownload } from "../shared/find-download.ts";
import { TableHead } from "../shared/table-head.tsx";
import { isShippable } from "../shared/verdict.ts";

const columns = { Target: "", "Smallest that passes": "", Figures: "", Download: "num" };

interface BestByTargetProps {
  readonly jobs: readonly JobSummary[];
  /** Of which versions the jobs are; empty where there is one. */
  readonly of: string;
}

/** For each target the smallest result that no gate speaks against. */
export function BestByTarget({ jobs, of }: BestByTargetProps) {
  const byTarget = [...Map.groupBy(jobs, ({ target }) => target)];
  return (
    <section class="card c12">
      <header>
        <h2>Best result for each target</h2>
        <span class="dim">{of}</span>
      </header>
      <div class="scrolled" tabIndex={0} role="region" aria-label="Best result for each target">
        <table>
          <TableHead columns={columns} />
          <tbody>
            {byTarget.map(([target, ofTarget]) => (
              <BestRow key={target} target={target} jobs={ofTarget} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

interface BestRowProps {
  readonly target: string;
  readonly jobs: readonly JobSummary[];
}

function BestRow({ target, jobs }: BestRowProps) {
  const job = findSmallest(jobs);
  if (job === undefined) {
    const isOver = jobs.every(({ status }) => isTerminal(status));
    return (
      <tr>
        <th scope="row">{target}</th>
        <td colSpan={3} class="dim">
          no result passes its gates{isOver ? "" : " yet"}
        </td>
      </tr>
    );
  }
  return (
    <tr>
      <th scope="row">{target}</th>
      <td>
        <a class="row-link" href={jobAddress(job.id)}>
          {job.scheme}
        </a>
      </td>
      <td class="soft">{describeResult(job)}</td>
      <td class="num">
        <DownloadLink job={job} />
      </td>
    </tr>
  );
}

function DownloadLink({ job: { id, target } }: { readonly job: JobSummary }) {
  const load = async () => service.call("listArtifacts", { params: { id } });
  const { value } = useLive(load, { of: [id] });
  const file = value && findDownload(value.artifacts);
  const needed = file && findWeightFiles(value.artifacts, file);
  return (
    file && (
      <a
        class="button"
        href={artifactAddress(id, file)}
        download
        aria-label={`Download the model for ${target}`}
        title={needed ? sayWeightFiles(file, needed) : undefined}
      >
        <Icon name="down" />
      </a>
    )
  );
}

function findSmallest(jobs: readonly JobSummary[]): JobSummary | undefined {
  const size = ({ figures }: JobSummary) => figures.resultBytes ?? Infinity;
  const good = jobs.filter((job) => isShippable(job) && job.figures.resultBytes !== null);
  return good.toSorted((a, b) => size(a) - size(b))[0];
}
