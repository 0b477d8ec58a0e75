import { statusReasonTable } from "../../contract/jobs/status-reasons.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { Icon } from "../shared/button.tsx";
import { formatOrdinal } from "../shared/format.ts";
import { Duration } from "../shared/page-head.tsx";
import { Prose } from "../shared/prose.tsx";
import { ProgressBar } from "../shared/status.tsx";
import type { JobDetail } from "../../contract/jobs/job.ts";

interface JobNoticesProps {
  readonly job: JobDetail;
  /** Whether somebody watches it since before its end: what stands below must not move then. */
  readonly wasLive: boolean;
}

/** What a job does now, or why it failed. */
export function JobNotices({ job, wasLive }: JobNoticesProps) {
  // In a box of its own: notices of the page itself lie over it.
  if (!wasLive)
    return (
      job.error && (
        <div>
          <Failure error={job.error} />
        </div>
      )
    );
  return (
    <div class="watched">
      {job.error && <Failure error={job.error} />}
      {!isTerminal(job.status) && <Progress job={job} />}
      {isTerminal(job.status) && job.error === null && <Ended job={job} />}
    </div>
  );
}

function Ended({ job }: { readonly job: JobDetail }) {
  const { status, cancelledBy, startedAt, finishedAt } = job;
  return (
    <div class="card progress">
      <p role="status">
        {status}
        {cancelledBy !== undefined && ` by ${cancelledBy.name}`}
        {startedAt !== null && finishedAt !== null && (
          <>
            {" "}
            after <Duration from={startedAt} to={finishedAt} />
          </>
        )}
      </p>
      <ProgressBar fraction={1} label="Progress" />
    </div>
  );
}

function Failure({
  error: { code, message },
}: {
  readonly error: NonNullable<JobDetail["error"]>;
}) {
  return (
    <div class="notice bad" role="alert">
      <Icon name="bad" />
      <div>
        <p title={message}>{message}</p>
        <p class="dim">
          <code>{code}</code> ·{" "}
          <a class="linked" href="#log">
            Read the log
          </a>
        </p>
      </div>
    </div>
  );
}

function Progress({ job }: { readonly job: JobDetail }) {
  const { fraction, message } = job.telemetry.progress;
  const isWaiting = job.status === "Pending";
  const words = isWaiting ? job.statusMessage : (message ?? job.statusMessage);
  return (
    <div class="card progress">
      <p title={words}>{words}</p>
      {isWaiting ? (
        <p class="soft">
          {job.queuePosition !== null && `${formatOrdinal(job.queuePosition)} in the queue. `}
          <Prose text={findAdvice(job.statusReason)} />
        </p>
      ) : (
        <ProgressBar fraction={fraction} label="Progress" />
      )}
    </div>
  );
}

/** What a user does about the reason for which a job waits; empty where that is nothing. */
function findAdvice(reason: string): string {
  const known = Object.entries(statusReasonTable).find(([name]) => name === reason);
  const advice = (known?.[1].action ?? "").replace(/^Nothing(: |\.$)/, "");
  return advice.charAt(0).toUpperCase() + advice.slice(1);
}
