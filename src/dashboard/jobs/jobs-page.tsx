import type { Signal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { useLayoutEffect, useMemo } from "preact/hooks";
import { BulkActions } from "./bulk-actions.tsx";
import { JobFilterBar } from "./job-filter-bar.tsx";
import { type JobFilters, jobListAddress, parseJobFilters } from "./job-filters.ts";
import type { JobList } from "./job-list.ts";
import { JobSearch } from "./job-search.tsx";
import { JobTable } from "./job-table.tsx";
import { type KeptList, openKeptList } from "./kept-lists.ts";
import { LiveSign } from "../live/live-sign.tsx";
import { mayDo } from "../session/session.ts";
import { Icon } from "../shared/button.tsx";
import { EmptyState, isRefusal, MaybeError, sayError } from "../shared/notice.tsx";
import { PageHead } from "../shared/page-head.tsx";

/** All jobs, live; the address says which. */
export function JobsPage() {
  const { url } = useLocation();
  const filters = useMemo(() => parseJobFilters(url), [url]);
  const { list, selected } = useKeptList(filters);
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

/** The list of the address, at the place where somebody left it who goes back to it. */
function useKeptList(filters: JobFilters): KeptList {
  const { url } = useLocation();
  const kept = useMemo(() => openKeptList(filters), [url]);
  useLayoutEffect(() => {
    scrollTo({ top: kept.scrollY, behavior: "instant" });
    const keep = () => (kept.scrollY = window.scrollY);
    // Else the browser would try before there are rows.
    history.scrollRestoration = "manual";
    addEventListener("scroll", keep, { passive: true });
    return () => {
      history.scrollRestoration = "auto";
      removeEventListener("scroll", keep);
    };
  }, [kept]);
  return kept;
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
  const reload = () => {
    scrollTo({ top: 0, behavior: "instant" });
    void list.load("newest");
  };
  const error = list.error.value;
  if (isRefusal(error)) return undefined;
  if (error !== undefined) return <MaybeError error={error} retry={reload} />;
  if (list.unseen.value === 0) return undefined;
  return (
    <div class="unseen-place">
      <button type="button" class="unseen" onClick={reload}>
        {list.unseen.value} new
      </button>
    </div>
  );
}

interface JobRowsProps {
  readonly list: JobList;
  readonly filters: JobFilters;
  readonly selected: Signal<ReadonlySet<string>>;
}

function JobRows({ list, filters, selected }: JobRowsProps) {
  const rows = list.rows.value;
  if (isRefusal(list.error.value)) return <NoMatch why={sayError(list.error.value)} />;
  if (rows === undefined) return <LoadingRows />;
  if (rows.length > 0) return <JobTable list={list} rows={rows} selected={selected} />;
  return isFiltered(filters) ? <NoMatch /> : <NoJobs />;
}

function isFiltered(filters: JobFilters): boolean {
  return jobListAddress({ ...filters, sort: "newest" }) !== "/jobs";
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

function NoMatch({ why }: { readonly why?: string }) {
  return (
    <EmptyState title={why === undefined ? "No jobs match these filters" : "No job can match"}>
      {why !== undefined && <p class="soft">{why}</p>}
      <a class="button" href="/jobs">
        Show all jobs
      </a>
    </EmptyState>
  );
}

function NoJobs() {
  return (
    <EmptyState title="No jobs yet">
      {mayDo("startWork") ? (
        <FirstSteps />
      ) : (
        <p class="soft">Jobs that others start in this project appear here.</p>
      )}
    </EmptyState>
  );
}

/** What somebody does who is here for the first time. */
function FirstSteps() {
  return (
    <>
      <ol class="first-steps">
        <li>
          <b>Choose a model.</b> An ONNX file of yours, or the sample: a small classifier of 0.4 MB.
        </li>
        <li>
          <b>Choose where it is to run</b>, such as <code>cpu</code>, and start the job.
        </li>
        <li>
          <b>Read what it cost</b> in size, accuracy and latency, and download the result.
        </li>
      </ol>
      <div class="buttons">
        <NewJobLink />
        <a class="button" href="/new?sample">
          Try the sample model
        </a>
      </div>
    </>
  );
}
