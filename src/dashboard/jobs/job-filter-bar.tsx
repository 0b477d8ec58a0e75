import { useLocation } from "preact-iso";
import { type JobFilters, jobListAddress, jobOrders, statusTabs } from "./job-filters.ts";
import { type JobStatus, jobStatus } from "../../contract/jobs/status.ts";
import { limits } from "../../contract/limits.ts";
import { useLive } from "../live/use-live.ts";
import { service } from "../session/service.ts";
import { Icon } from "../shared/button.tsx";

/** Statuses to choose from, and the other filters, each with a way out. */
export function JobFilterBar({ filters }: { readonly filters: JobFilters }) {
  return (
    <div class="filters">
      <StatusTabs filters={filters} />
      {listChips(filters).map((chip) => (
        <Chip key={`${chip.name} ${chip.value}`} {...chip} />
      ))}
      <span class="grow" />
      <OrderChoice filters={filters} />
    </div>
  );
}

function OrderChoice({ filters }: { readonly filters: JobFilters }) {
  const { route } = useLocation();
  const sort = (wanted: string) => {
    const order = jobOrders.find((each) => each === wanted);
    if (order !== undefined) route(jobListAddress({ ...filters, sort: order }));
  };
  return (
    <label class="order">
      Order
      <select value={filters.sort} onChange={({ currentTarget }) => sort(currentTarget.value)}>
        {jobOrders.map((order) => (
          <option key={order}>{order}</option>
        ))}
      </select>
    </label>
  );
}

function StatusTabs({ filters }: { readonly filters: JobFilters }) {
  const { target, model, batch, label, search } = filters;
  const query = { target, model, batch, label: [...label], search: [...search] };
  const { value } = useLive(() => service.call("countJobs", { query }), {
    of: [JSON.stringify(query)],
    concerns: ({ job, deletedJob }) => job !== undefined || deletedJob !== undefined,
    pauseMs: 1000,
  });
  return (
    <nav class="tabs" aria-label="Status">
      {Object.entries(statusTabs).map(([title, status]) => (
        <a
          key={title}
          href={jobListAddress({ ...filters, status })}
          aria-current={isSame(status, filters.status) ? "true" : undefined}
        >
          {title} {value && <b>{formatJobCount(value.counts, status)}</b>}
        </a>
      ))}
    </nav>
  );
}

function isSame(one: JobFilters["status"], other: JobFilters["status"]): boolean {
  return one.join() === other.join();
}

interface ChipProps {
  readonly name: string;
  readonly value: string;
  /** The list without the filter. */
  readonly href: string;
}

function Chip({ name, value, href }: ChipProps) {
  return (
    <a class="chip" href={href} aria-label={`Remove the filter ${name} ${value}`}>
      {name} <b>{value}</b>
      <Icon name="close" />
    </a>
  );
}

function listChips(filters: JobFilters): ChipProps[] {
  const { model, target, batch } = filters;
  const named = Object.entries({ model, target, batch }).flatMap(([name, value]) => {
    const href = jobListAddress({ ...filters, [name]: undefined });
    return value === undefined ? [] : [{ name, value, href }];
  });
  const hasTab = Object.values(statusTabs).some((status) => isSame(status, filters.status));
  const lists = hasTab ? (["label", "search"] as const) : (["status", "label", "search"] as const);
  const several = lists.flatMap((list) =>
    filters[list].map((value) => {
      const others = filters[list].filter((other) => other !== value);
      const name = list === "search" ? "model has" : list;
      return { name, value, href: jobListAddress({ ...filters, [list]: others }) };
    }),
  );
  return [...named, ...several];
}

/** How many jobs are in some statuses, or in any where none is named. */
function formatJobCount(
  counts: Readonly<Record<JobStatus, number>>,
  statuses: readonly JobStatus[],
): string {
  const counted = (statuses.length === 0 ? jobStatus.options : statuses).map(
    (status) => counts[status],
  );
  const total = counted.reduce((sum, count) => sum + count, 0);
  const isLeast = counted.some((count) => count >= limits.countedJobs);
  return `${total.toLocaleString("en")}${isLeast ? "+" : ""}`;
}
