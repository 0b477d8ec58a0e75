import { type Signal, useSignal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { JobFilterBar } from "./job-filter-bar.tsx";
import { type JobFilters, parseJobFilters, searchAddress } from "./job-filters.ts";
import { JobList } from "./job-list.ts";
import { JobTable } from "./job-table.tsx";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { LiveSign } from "../live/live-sign.tsx";
import { service } from "../session/service.ts";
import { mayDo } from "../session/session.ts";
import { Button, Icon } from "../shared/button.tsx";
import { EmptyState, ErrorNotice, sayError } from "../shared/notice.tsx";
import { PageHead } from "../shared/page-head.tsx";
import { isTyping } from "../shared/palette.ts";

/** All jobs, live; the address says which. */
export function JobsPage() {
  const { url } = useLocation();
  const filters = useMemo(() => parseJobFilters(url), [url]);
  const list = useMemo(() => new JobList(filters), [filters]);
  const selected = useSignal<ReadonlySet<string>>(new Set());
  useEffect(() => {
    void list.load("newest");
    selected.value = new Set();
    return list.follow();
  }, [list]);
  return (
    <main id="main">
      <PageHead title="Jobs" sign={<LiveSign />}>
        <JobSearch filters={filters} />
        {mayDo("startWork") && <NewJobLink />}
      </PageHead>
      <JobFilterBar filters={filters} />
      <ListNotice list={list} />
      <JobRows list={list} filters={filters} selected={selected} />
      <BulkActions list={list} selected={selected} />
    </main>
  );
}

function NewJobLink() {
  return (
    <a class="button main" href="/new">
      <Icon name="plus" />
      New job
    </a>
  );
}

/** What stands over the rows: an error, or jobs that came since. */
function ListNotice({ list }: { readonly list: JobList }) {
  const reload = () => void list.load("newest");
  if (list.error.value !== undefined)
    return <ErrorNotice error={list.error.value} retry={reload} />;
  if (list.unseen.value === 0) return undefined;
  return (
    <button type="button" class="unseen" onClick={reload}>
      {list.unseen.value} new
    </button>
  );
}

interface JobRowsProps {
  readonly list: JobList;
  readonly filters: JobFilters;
  readonly selected: Signal<ReadonlySet<string>>;
}

function JobRows({ list, filters, selected }: JobRowsProps) {
  const rows = list.rows.value;
  if (rows === undefined) return <LoadingRows />;
  if (rows.length > 0) return <JobTable list={list} rows={rows} selected={selected} />;
  return isFiltered(filters) ? <NoMatch /> : <NoJobs />;
}

function isFiltered({ status, label, ...others }: JobFilters): boolean {
  return (
    status.length + label.length > 0 || Object.values(others).some((each) => each !== undefined)
  );
}

function LoadingRows() {
  return (
    <div class="card wide loading" aria-busy="true">
      <p class="sr">Loading jobs</p>
      {Array.from({ length: 8 }, (_, index) => (
        <div key={index} class="ghost" />
      ))}
    </div>
  );
}

function NoMatch() {
  return (
    <EmptyState title="No jobs match these filters">
      <a class="button" href="/jobs">
        Show all jobs
      </a>
    </EmptyState>
  );
}

function NoJobs() {
  return (
    <EmptyState title="No jobs yet">
      <p class="soft">Upload a model and choose its target: the job appears here.</p>
      <NewJobLink />
    </EmptyState>
  );
}

/** Finds jobs by model, target, label, batch or id; `/` leads to it. */
function JobSearch({ filters }: { readonly filters: JobFilters }) {
  const { route } = useLocation();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => focusBySlash(input.current), []);
  const submit = (event: Event) => {
    event.preventDefault();
    const text = input.current?.value ?? "";
    if (input.current) input.current.value = "";
    route(searchAddress(text, filters));
  };
  return (
    <form class="field" role="search" onSubmit={submit}>
      <Icon name="search" />
      <input
        ref={input}
        aria-label="Find jobs"
        placeholder="Model, target:cpu, label:a=b or id"
        autocomplete="off"
        spellcheck={false}
      />
      <kbd>/</kbd>
    </form>
  );
}

function focusBySlash(input: HTMLInputElement | null): () => void {
  const listen = (event: KeyboardEvent) => {
    if (event.key !== "/" || isTyping(event)) return;
    event.preventDefault();
    input?.focus();
  };
  addEventListener("keydown", listen);
  return () => removeEventListener("keydown", listen);
}

/** What can be done to the selected jobs; each button says to how many. */
function BulkActions({ list, selected }: { list: JobList; selected: Signal<ReadonlySet<string>> }) {
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
      <Button look="quiet" label="Clear the selection" onClick={selectNone}>
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
