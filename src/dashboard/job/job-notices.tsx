import { statusReasonTable } from "../../contract/jobs/status-reasons.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { Icon } from "../shared/button.tsx";
import { ProgressBar } from "../shared/status.tsx";
import type { JobDetail } from "../../contract/jobs/job.ts";

/** What a job does now, or why it failed. */
export function JobNotices({ job }: { readonly job: JobDetail }) {
  return (
    <>
      {!isTerminal(job.status) && <Progress job={job} />}
      {job.error && <Failure error={job.error} />}
    </>
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
        <p>{message}</p>
        <p class="mono dim">{code}</p>
      </div>
    </div>
  );
}

function Progress({ job }: { readonly job: JobDetail }) {
  const { fraction, message } = job.telemetry.progress;
  const isWaiting = job.status === "Pending";
  return (
    <div class="card progress">
      <p>{isWaiting ? job.statusMessage : (message ?? job.statusMessage)}</p>
      {isWaiting ? (
        <p class="soft">{findAdvice(job.statusReason)}</p>
      ) : (
        <ProgressBar fraction={fraction} label="Progress" />
      )}
    </div>
  );
}

/** What a user does about the reason for which a job waits. */
function findAdvice(reason: string): string | undefined {
  const known = Object.entries(statusReasonTable).find(([name]) => name === reason);
  return known?.[1].action;
}
