import { JobActions } from "./job-actions.tsx";
import type { JobDetail } from "../../contract/jobs/job.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { LiveSign } from "../live/live-sign.tsx";
import { batchLabel } from "../jobs/batch-labels.ts";
import { shortJobName } from "../shared/format.ts";
import { tabSigns, useTabIcon, useTitle } from "../shared/page-head.tsx";
import { ToneSign } from "../shared/status.tsx";
import { judgeJob } from "../shared/verdict.ts";

export function JobHead({ job }: { readonly job: JobDetail }) {
  const { tone, icon, words } = judgeJob(job);
  useTitle(sayTabTitle(job, tone));
  useTabIcon(tone);
  return (
    <div class="top is-steady">
      <div>
        <JobCrumbs job={job} />
        <h1 class="title">
          <span title={job.name}>
            {shortJobName({ ...job, model: job.model.name })} <span class="dim">for</span>{" "}
            {job.target}
          </span>
          <ToneSign tone={tone} icon={icon} words={words} />
          {!isTerminal(job.status) && <LiveSign />}
        </h1>
      </div>
      <span class="grow" />
      <JobActions job={job} />
    </div>
  );
}

/** A tab among many says how its job stands. */
function sayTabTitle(job: JobDetail, tone: keyof typeof tabSigns | "work"): string {
  const percent = Math.floor(100 * job.telemetry.progress.fraction);
  return `${tone === "work" ? `${percent} % ` : tabSigns[tone]}${job.name}`;
}

function JobCrumbs({ job: { batchId } }: { readonly job: JobDetail }) {
  return (
    <nav class="crumb" aria-label="Breadcrumb">
      <a href="/jobs">Jobs</a>
      {batchId !== null && (
        <>
          {" / "}
          <a href={`/batches/${batchId}`}>{batchLabel(batchId).value?.name ?? batchId}</a>
        </>
      )}
    </nav>
  );
}
