import { type Signal, useSignal } from "@preact/signals";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { service } from "../session/service.ts";
import { mayDo } from "../session/session.ts";
import { Button } from "../shared/button.tsx";
import { Icon } from "../shared/icon.tsx";
import { sayError } from "../shared/notice.tsx";
import type { JobList } from "./job-list.ts";

interface BulkActionsProps {
  readonly list: JobList;
  readonly selected: Signal<ReadonlySet<string>>;
}

/** What can be done to the selected jobs; each button says to how many. */
export function BulkActions({ list, selected }: BulkActionsProps) {
  const failure = useSignal<string | undefined>(undefined);
  const jobs = listSelected(list, selected.value);
  if (jobs.length === 0) return undefined;
  const ended = jobs.filter(({ status }) => isTerminal(status));
  const open = jobs.filter(({ status }) => !isTerminal(status));
  const selectNone = () => (selected.value = new Set());
  const run = (chosen: readonly JobSummary[], change: ChangeJob) => () =>
    changeAll(chosen, change).then(selectNone, (error) => (failure.value = sayError(error)));
  return (
    <div class="bulk" role="toolbar" aria-label="Selected jobs">
      <b>{jobs.length} selected</b>
      {failure.value !== undefined && <span class="bad">{failure.value}</span>}
      {ended.length > 0 && mayDo("retryWork") && (
        <RetryButton count={ended.length} onClick={run(ended, retryJob)} />
      )}
      {open.length > 0 && mayDo("cancelWork") && (
        <CancelButton count={open.length} onClick={run(open, cancelJob)} />
      )}
      <Button look="quiet" label="Select none" onClick={selectNone}>
        <Icon name="close" />
      </Button>
    </div>
  );
}

interface CountedButtonProps {
  readonly count: number;
  readonly onClick: () => unknown;
}

function RetryButton({ count, onClick }: CountedButtonProps) {
  return (
    <Button look="quiet" onClick={onClick}>
      <Icon name="again" />
      Retry {count}
    </Button>
  );
}

function CancelButton({ count, onClick }: CountedButtonProps) {
  return (
    <Button look="quiet danger" onClick={onClick}>
      Cancel {count}
    </Button>
  );
}

type ChangeJob = (id: string) => Promise<unknown>;

const cancelJob: ChangeJob = (id) => service.call("cancelJob", { params: { id } });
const retryJob: ChangeJob = (id) => service.call("retryJob", { params: { id } });

async function changeAll(jobs: readonly JobSummary[], change: ChangeJob): Promise<void> {
  for (const { id } of jobs) await change(id);
}

function listSelected({ rows }: JobList, selected: ReadonlySet<string>): JobSummary[] {
  const jobs = (rows.value ?? []).map((row) => row.value);
  return jobs.filter(({ id }) => selected.has(id));
}
