import type { JobSummary } from "../../contract/jobs/job-summary.ts";
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

/** For each target the smallest result that no gate speaks against. */
export function BestByTarget({ jobs }: { readonly jobs: readonly JobSummary[] }) {
  const byTarget = [...Map.groupBy(jobs, ({ target }) => target)];
  return (
    <section class="card c12">
      <header>
        <h2>Best result for each target</h2>
      </header>
      <div class="scrolled" tabIndex={0} role="region" aria-label="Best result for each target">
        <table>
          <TableHead columns={columns} />
          <tbody>
            {byTarget.map(([target, ofTarget]) => (
              <BestRow key={target} target={target} job={findSmallest(ofTarget)} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function BestRow({ target, job }: { readonly target: string; job: JobSummary | undefined }) {
  if (job === undefined) {
    return (
      <tr>
        <th scope="row">{target}</th>
        <td colSpan={3} class="dim">
          no result passes its gates
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
