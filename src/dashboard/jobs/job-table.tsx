import type { Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { useWindowRows } from "../shared/use-window-rows.ts";
import type { JobList } from "./job-list.ts";
import { JobRow } from "./job-row.tsx";

/** As the style sheet's `--row`. */
const rowPx = 40;
/** Rows from the end at which the next page is loaded. */
const loadAhead = 60;

const columns = ["Size", "Accuracy", "Latency, original = 1", "Gates"] as const;

interface JobTableProps {
  readonly list: JobList;
  readonly rows: readonly Signal<JobSummary>[];
  readonly selected: Signal<ReadonlySet<string>>;
}

/** The jobs, of which those in the window are drawn. */
export function JobTable({ list, rows, selected }: JobTableProps) {
  const body = useRef<HTMLTableSectionElement>(null);
  const { start, end } = useWindowRows(body, { count: rows.length, rowPx });
  useEffect(() => {
    if (list.hasMore && end + loadAhead > rows.length) void list.load("more");
  }, [end, rows.length]);
  return (
    <div class="card wide">
      <table class="jobs" aria-rowcount={list.hasMore ? -1 : rows.length}>
        <caption class="sr">Jobs, newest first</caption>
        <JobTableHead />
        <tbody ref={body}>
          <Spacer px={start * rowPx} />
          {rows.slice(start, end).map((row) => (
            <JobRow key={row.peek().id} row={row} selected={selected} />
          ))}
          <Spacer px={(rows.length - end) * rowPx} />
        </tbody>
      </table>
      <div class="foot">
        {list.hasMore ? `${rows.length} loaded, more when you scroll` : `${rows.length} jobs`}
        <span class="grow" />
        Newest first
      </div>
    </div>
  );
}

function JobTableHead() {
  return (
    <thead>
      <tr>
        <th class="pick phone-off">
          <span class="sr">Selected</span>
        </th>
        <th class="col-status">Status</th>
        <th class="col-model">Model, target, recipe</th>
        {columns.map((title) => (
          <th key={title} class={`phone-off col-${title.split(",", 1)[0]?.toLowerCase()}`}>
            {title}
          </th>
        ))}
        <th class="num col-time">Time</th>
        <th class="phone-off col-by">By</th>
        <th class="num phone-off col-ended">Ended</th>
      </tr>
    </thead>
  );
}

/** Stands for rows that are not drawn. */
function Spacer({ px }: { readonly px: number }) {
  if (px === 0) return undefined;
  return (
    <tr aria-hidden="true" class="spacer">
      <td colSpan={10} style={{ height: `${px}px` }} />
    </tr>
  );
}
