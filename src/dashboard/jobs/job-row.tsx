import type { Signal } from "@preact/signals";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { shortJobName } from "../shared/short-job-name.ts";
import { LatencyMark } from "../shared/latency-mark.tsx";
import { ProgressBar } from "../shared/progress-bar.tsx";
import { Status } from "../shared/status.tsx";
import { Age, Duration } from "../shared/time.tsx";
import { ToneSign } from "../shared/tone-sign.tsx";
import { toLatencyRatio } from "../shared/to-latency-ratio.ts";
import { toggleSelected } from "./toggle-selected.ts";

interface JobRowProps {
  readonly row: Signal<JobSummary>;
  readonly selected: Signal<ReadonlySet<string>>;
}

export function JobRow({ row, selected }: JobRowProps) {
  const job = row.value;
  const { id, status, startedAt, createdAt, finishedAt, createdBy } = job;
  return (
    <tr aria-selected={selected.value.has(id)}>
      <PickCell job={job} selected={selected} />
      <td>
        <Status status={status} />
      </td>
      <JobName job={job} />
      {status === "Completed" ? <Figures job={job} /> : <Doing job={job} />}
      <td class="num">
        <Duration from={startedAt ?? createdAt} to={finishedAt} />
      </td>
      <td class="soft phone-off cut">{createdBy?.name}</td>
      <td class="num dim phone-off">{finishedAt !== null && <Age at={finishedAt} />}</td>
    </tr>
  );
}

interface JobProps {
  readonly job: JobSummary;
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
  return (
    <td class="two cut">
      <a class="row-link" href={`/jobs/${job.id}`}>
        {shortJobName(job)}
      </a>
      <small>
        {job.target} · {job.scheme}
        {job.dryRun && " · dry run"}
      </small>
    </td>
  );
}

/** What a job that has no figures does, or why it has none. */
function Doing({ job }: JobProps) {
  const { fraction, message } = job.progress;
  const isWorking = !isTerminal(job.status) && job.status !== "Pending";
  return (
    <td colSpan={4} class="soft phone-off">
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

function Figures({ job: { figures, gates } }: JobProps) {
  const { resultBytes, sizeRatio, sqnrDb } = figures;
  const latency = toLatencyRatio(figures);
  return (
    <>
      <td class="num phone-off">
        {resultBytes !== null && formatBytes(resultBytes)}{" "}
        {sizeRatio !== null && <span class="dim">{Math.round(100 * sizeRatio)} %</span>}
      </td>
      <td class="num phone-off">
        {sqnrDb?.toFixed(1)} {sqnrDb !== null && <span class="dim">dB</span>}
      </td>
      <td class="num phone-off">
        {latency ? <LatencyMark latency={latency} /> : <span class="dim">not timed</span>}
      </td>
      <td class="phone-off">
        <GateCount gates={gates} />
      </td>
    </>
  );
}

function GateCount({ gates }: Pick<JobSummary, "gates">) {
  if (gates.length === 0) return <span class="dim">none</span>;
  const failed = gates.filter(({ passed, level }) => !passed && level === "fail").length;
  const warned = gates.filter(({ passed }) => !passed).length - failed;
  if (failed > 0) return <ToneSign tone="bad" icon="close" words={`${failed} failed`} />;
  if (warned > 0) return <ToneSign tone="warn" icon="warn" words={`${warned} warned`} />;
  return <ToneSign tone="calm" icon="check" words={`${gates.length} of ${gates.length}`} />;
}
