import { type Signal, useSignal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { useEffect, useMemo } from "preact/hooks";
import { LiveSign } from "../live/live-sign.tsx";
import { mayDo } from "../session/session.ts";
import { Icon } from "../shared/icon.tsx";
import { EmptyState, ErrorNotice } from "../shared/notice.tsx";
import { PageHead } from "../shared/page-head.tsx";
import { BulkActions } from "./bulk-actions.tsx";
import { JobFilterBar } from "./job-filter-bar.tsx";
import { type JobFilters, parseJobFilters } from "./job-filters.ts";
import { JobList } from "./job-list.ts";
import { JobSearch } from "./job-search.tsx";
import { JobTable } from "./job-table.tsx";

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
      <p class="sr">Loading the jobs</p>
      {Array.from({ length: 8 }, (_, index) => (
        <div key={index} class="ghost" />
      ))}
    </div>
  );
}

function NoMatch() {
  return (
    <EmptyState title="No job fits these filters">
      <a class="button" href="/jobs">
        Show all jobs
      </a>
    </EmptyState>
  );
}

function NoJobs() {
  return (
    <EmptyState title="No jobs yet">
      <p class="soft">Drop a model and choose what it is for; its job appears here.</p>
      <NewJobLink />
    </EmptyState>
  );
}
