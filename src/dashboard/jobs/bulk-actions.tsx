import { type Signal, useSignal } from "@preact/signals";
import type { JobList } from "./job-list.ts";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { service } from "../session/service.ts";
import { mayDo } from "../session/session.ts";
import { compareAddress } from "../shared/addresses.ts";
import { Button, Icon } from "../shared/button.tsx";
import { DialogRemovalEnd, Dialog } from "../shared/dialog.tsx";
import { sayError } from "../shared/notice.tsx";

interface BulkActionsProps {
  readonly list: JobList;
  readonly selected: Signal<ReadonlySet<string>>;
}

/** What can be done to the selected jobs; each button says to how many. */
export function BulkActions({ list, selected }: BulkActionsProps) {
  const answer = useSignal<BulkAnswer | undefined>(undefined);
  const jobs = listSelected(list, selected.value);
  const selectNone = () => (selected.value = new Set());
  const run = (chosen: readonly JobSummary[], change: BulkChange) => () => {
    answer.value = undefined;
    return changeAll(chosen, change).then(
      (done) => {
        selectNone();
        answer.value = done;
      },
      (error) => (answer.value = { text: sayError(error), isBad: true }),
    );
  };
  if (jobs.length === 0) {
    return <BulkResult answer={answer.value} onClose={() => (answer.value = undefined)} />;
  }
  return (
    <div class="bulk" role="toolbar" aria-label="Selected jobs">
      <b>{jobs.length} selected</b>
      {answer.value?.isBad && <span class="bad">{answer.value.text}</span>}
      {jobs.length > 1 && (
        <a class="button" href={compareAddress(jobs.map(({ id }) => id))}>
          Compare {jobs.length}
        </a>
      )}
      <BulkChanges jobs={jobs} run={run} />
      <Button look="quiet" label="Clear the selection" onClick={selectNone}>
        <Icon name="close" />
      </Button>
    </div>
  );
}

interface BulkChangesProps {
  readonly jobs: readonly JobSummary[];
  readonly run: (chosen: readonly JobSummary[], change: BulkChange) => () => Promise<unknown>;
}

function BulkChanges({ jobs, run }: BulkChangesProps) {
  const isAsking = useSignal(false);
  const ended = jobs.filter(({ status }) => isTerminal(status));
  const open = jobs.filter(({ status }) => !isTerminal(status));
  const remove = () => {
    isAsking.value = false;
    void run(ended, removal)();
  };
  return (
    <>
      {ended.length > 0 && mayDo("retryWork") && (
        <Button look="quiet" onClick={run(ended, retry)}>
          <Icon name="again" />
          Retry {ended.length}
        </Button>
      )}
      {open.length > 0 && mayDo("cancelWork") && (
        <Button look="quiet danger" onClick={run(open, cancellation)}>
          Cancel {open.length}
        </Button>
      )}
      {ended.length > 0 && mayDo("deleteWork") && (
        <Button look="quiet danger" onClick={() => (isAsking.value = true)}>
          Delete {ended.length}
        </Button>
      )}
      {isAsking.value && (
        <Dialog title={`Delete ${sayJobs(ended.length)}`} onClose={() => (isAsking.value = false)}>
          <p>Their results, logs and figures are deleted for good.</p>
          <DialogRemovalEnd
            keep="Keep"
            onKeep={() => (isAsking.value = false)}
            remove="Delete"
            onRemove={remove}
          />
        </Dialog>
      )}
    </>
  );
}

interface BulkAnswer {
  readonly text: string;
  readonly isBad?: boolean;
  readonly href?: string;
}

interface BulkResultProps {
  readonly answer: BulkAnswer | undefined;
  readonly onClose: () => void;
}

/** What became of the jobs that were selected, until somebody has read it. */
function BulkResult({ answer, onClose }: BulkResultProps) {
  if (answer === undefined) return undefined;
  return (
    <div class="bulk" role="status">
      <b>{answer.text}</b>
      {answer.href !== undefined && (
        <a class="button" href={answer.href}>
          Open it
        </a>
      )}
      <Button look="quiet" label="Close" onClick={onClose}>
        <Icon name="close" />
      </Button>
    </div>
  );
}

interface BulkChange {
  /** @returns the id of a job that it starts */
  readonly change: (id: string) => Promise<string | undefined>;
  readonly say: (jobs: string) => string;
}

const cancellation: BulkChange = {
  change: async (id) => void (await service.call("cancelJob", { params: { id } })),
  say: (jobs) => `${jobs} cancelled`,
};
const retry: BulkChange = {
  change: async (id) => (await service.call("retryJob", { params: { id } })).id,
  say: (jobs) => `${jobs} started anew, as new jobs`,
};
const removal: BulkChange = {
  change: async (id) => {
    await service.callEmpty("deleteJob", { params: { id } });
    return undefined;
  },
  say: (jobs) => `${jobs} deleted`,
};

async function changeAll(
  jobs: readonly JobSummary[],
  { change, say }: BulkChange,
): Promise<BulkAnswer> {
  const started: string[] = [];
  for (const { id } of jobs) started.push(...[(await change(id)) ?? []].flat());
  const text = say(sayJobs(jobs.length));
  const [only] = started;
  return started.length === 1 ? { text, href: `/jobs/${only}` } : { text };
}

function sayJobs(count: number): string {
  return `${count} ${count === 1 ? "job" : "jobs"}`;
}

function listSelected({ rows }: JobList, selected: ReadonlySet<string>): JobSummary[] {
  const jobs = (rows.value ?? []).map((row) => row.value);
  return jobs.filter(({ id }) => selected.has(id));
}
