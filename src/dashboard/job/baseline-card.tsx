import { summarizeJob } from "../../contract/jobs/summarize-job.ts";
import type { JobDetail } from "../../contract/jobs/job.ts";
import { service } from "../session/service.ts";
import { changesAddress, jobAddress } from "../../contract/page-addresses.ts";
import { compareFigures, explainUncompared } from "../shared/figures.ts";
import { describeCommit } from "../shared/format.ts";
import { type ComparedJob, listJobFacts } from "../shared/job-facts.ts";
import { sayError } from "../shared/notice.tsx";
import { useScrollFromAddress } from "../shared/scroll-from-address.ts";
import { TableHead } from "../shared/table-head.tsx";
import { useLive } from "../live/use-live.ts";

type JobBaseline = NonNullable<JobDetail["baseline"]>;

interface BaselineCardProps {
  readonly job: JobDetail;
  readonly baseline: JobBaseline;
}

/** A job beside its baseline: figures, and what was requested or measured in another way. */
export function BaselineCard({ job, baseline }: BaselineCardProps) {
  const card = useScrollFromAddress("baseline");
  return (
    <section ref={card} id="baseline" class="card c12">
      <header>
        <h2>Compared with {describeCommit(baseline)}</h2>
        <span class="grow" />
        <a href={changesAddress(job.id, "model")}>What changed in the model</a>
        <a href={jobAddress(baseline.jobId)}>Open the baseline job</a>
      </header>
      <div class="scrolled" tabIndex={0} role="region" aria-label="Job and baseline">
        <table>
          <TableHead columns={columns} />
          <FigureRows job={job} />
          <DifferenceRows job={job} baseline={baseline} />
        </table>
      </div>
    </section>
  );
}

const columns = { Figure: "", Baseline: "", "This job": "", Change: "" };

function FigureRows({ job }: Pick<BaselineCardProps, "job">) {
  return (
    <tbody>
      {compareFigures(summarizeJob(job)).map(({ figure, judgement, before, now, change }) => (
        <tr key={figure}>
          <th scope="row" class="figure-name">
            {figure}
          </th>
          <td>{before}</td>
          <td>{now}</td>
          <td>
            <span class={`judged ${judgement}`}>
              <b>{change}</b> {judgement}
            </span>
          </td>
        </tr>
      ))}
      {explainUncompared(job).map(({ figure, now, why }) => (
        <tr key={figure}>
          <th scope="row" class="figure-name">
            {figure}
          </th>
          <td class="dim wrapped">{why}</td>
          <td>{now}</td>
          <td class="dim">not compared</td>
        </tr>
      ))}
    </tbody>
  );
}

function DifferenceRows({ job, baseline }: BaselineCardProps) {
  const params = { id: baseline.jobId };
  const { value: before, error } = useLive(() => service.call("getJob", { params }));
  if (error !== undefined) return <NoDifferences why={sayError(error)} />;
  if (before === undefined) return undefined;
  const differences = listDifferences(before, job);
  if (differences.length === 0) return <NoDifferences why="Same recipe, machine and runtime" />;
  return (
    <tbody>
      {differences.map(({ name, before: former, now }) => (
        <tr key={name}>
          <th scope="row">{name}</th>
          <td class="mono">{former}</td>
          <td class="mono">{now}</td>
          <td class="soft">differs</td>
        </tr>
      ))}
    </tbody>
  );
}

function NoDifferences({ why }: { readonly why: string }) {
  return (
    <tbody>
      <tr>
        <td colSpan={Object.keys(columns).length} class="dim">
          {why}
        </td>
      </tr>
    </tbody>
  );
}

interface Difference {
  readonly name: string;
  readonly before: string;
  readonly now: string;
}

/** What two jobs of one model and target were requested or measured with, where it differs. */
function listDifferences(before: ComparedJob, now: ComparedJob): Difference[] {
  const [former, present] = [listJobFacts(before), listJobFacts(now)];
  const names = [...new Set([...former.keys(), ...present.keys()])];
  return names.flatMap((name) => {
    const [was, is] = [former.get(name) ?? "none", present.get(name) ?? "none"];
    return was === is ? [] : [{ name, before: was, now: is }];
  });
}
