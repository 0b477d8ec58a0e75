import { type Signal, useSignal } from "@preact/signals";
import type { JobList } from "./job-list.ts";
import { ConnectionError } from "../../client/transport.ts";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { formatCount } from "../../contract/text/format-count.ts";
import { service } from "../session/service.ts";
import { mayDo } from "../session/session.ts";
import { compareAddress } from "../shared/addresses.ts";
import { Button, Icon } from "../shared/button.tsx";
import { RemovalDialog } from "../shared/dialog.tsx";
import { sayError } from "../shared/notice.tsx";
import { useStart } from "../shared/use-start.ts";

interface BulkActionsProps {
  readonly list: JobList;
  readonly selected: Signal<ReadonlySet<string>>;
}

/** What can be done to the selected jobs; each button says to how many. */
export function BulkActions({ list, selected }: BulkActionsProps) {
  const answer = useSignal<BulkAnswer | undefined>(undefined);
  const jobs = listSelected(list, selected.value);
  const selectNone = () => (selected.value = new Set());
  const { start } = useStart();
  const run = (chosen: readonly JobSummary[], change: BulkChange) => () =>
    start(async () => {
      answer.value = undefined;
      const { done, ...said } = await changeAll(chosen, change);
      selected.value = new Set([...selected.value].filter((id) => !done.has(id)));
      answer.value = said;
    });
  if (jobs.length === 0) {
    return <BulkResult answer={answer.value} onClose={() => (answer.value = undefined)} />;
  }
  return (
    <div class="bulk" role="toolbar" aria-label="Selected jobs">
      <b>{jobs.length} selected</b>
      {answer.value && <BulkWords answer={answer.value} />}
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
        <RemovalDialog
          title={`Delete ${sayJobs(ended.length)}`}
          keep="Keep"
          remove="Delete"
          onKeep={() => (isAsking.value = false)}
          onRemove={remove}
        >
          <p>Their results, logs and figures are deleted for good.</p>
        </RemovalDialog>
      )}
    </>
  );
}

interface BulkAnswer {
  readonly text: string;
  readonly isBad: boolean;
  /** Of the only job that was started. */
  readonly href: string | undefined;
}

interface BulkResultProps {
  readonly answer: BulkAnswer | undefined;
  readonly onClose: () => void;
}

/** What became of the jobs that were selected, until somebody has read it. */
function BulkResult({ answer, onClose }: BulkResultProps) {
  if (answer === undefined) return undefined;
  return (
    <div class="bulk">
      <BulkWords answer={answer} />
      <Button look="quiet" label="Close" onClick={onClose}>
        <Icon name="close" />
      </Button>
    </div>
  );
}

function BulkWords({ answer: { text, isBad, href } }: { readonly answer: BulkAnswer }) {
  return (
    <>
      <b role="status" class={isBad ? "bad" : ""}>
        {text}
      </b>
      {href !== undefined && (
        <a class="button" href={href}>
          Open it
        </a>
      )}
    </>
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
  say: (jobs) => `${jobs} started again, as new jobs`,
};
const removal: BulkChange = {
  change: async (id) => {
    await service.callEmpty("deleteJob", { params: { id } });
    return undefined;
  },
  say: (jobs) => `${jobs} deleted`,
};

interface BulkEnd extends BulkAnswer {
  /** Ids of the jobs that were changed. */
  readonly done: ReadonlySet<string>;
}

/** Changes each job, also after one that is refused. */
async function changeAll(
  jobs: readonly JobSummary[],
  { change, say }: BulkChange,
): Promise<BulkEnd> {
  const done = new Set<string>();
  const started: string[] = [];
  let refusal: string | undefined;
  for (const { id, name } of jobs) {
    try {
      started.push(...[(await change(id)) ?? []].flat());
      done.add(id);
    } catch (error) {
      refusal ??= `${name}: ${sayError(error)}`;
      if (error instanceof ConnectionError) break;
    }
  }
  const left = refusal === undefined ? "" : `, ${jobs.length - done.size} left. ${refusal}`;
  const [only] = started;
  return {
    done,
    text: say(sayJobs(done.size)) + left,
    isBad: refusal !== undefined,
    href: started.length === 1 ? `/jobs/${only}` : undefined,
  };
}

function sayJobs(count: number): string {
  return formatCount(count, "job");
}

function listSelected({ rows }: JobList, selected: ReadonlySet<string>): JobSummary[] {
  const jobs = (rows.value ?? []).map((row) => row.value);
  return jobs.filter(({ id }) => selected.has(id));
}
