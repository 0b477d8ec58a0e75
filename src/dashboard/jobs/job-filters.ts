import { jobStatus, type JobStatus } from "../../contract/jobs/status.ts";
import { isId } from "../../contract/id.ts";

/** What the list of jobs is restricted to; its address says it. */
export interface JobFilters {
  readonly status: readonly JobStatus[];
  readonly target: string | undefined;
  readonly model: string | undefined;
  readonly batch: string | undefined;
  readonly label: readonly string[];
}

/** Groups of statuses that people ask for. */
export const statusTabs: Readonly<Record<string, readonly JobStatus[]>> = {
  All: [],
  Waiting: ["Pending"],
  Working: ["Sharding", "Optimizing", "Cancelling"],
  Completed: ["Completed"],
  Failed: ["Failed"],
  Cancelled: ["Cancelled"],
};

/** The filters of an address; what it has besides them is ignored. */
export function parseJobFilters(url: string): JobFilters {
  const { searchParams } = new URL(url, "http://page");
  const parsed = searchParams.getAll("status").map((text) => jobStatus.safeParse(text).data);
  return {
    status: parsed.filter((status) => status !== undefined),
    target: searchParams.get("target") ?? undefined,
    model: searchParams.get("model") ?? undefined,
    batch: searchParams.get("batch") ?? undefined,
    label: searchParams.getAll("label"),
  };
}

/** The address of the list with some filters. */
export function jobListAddress({ status, target, model, batch, label }: JobFilters): string {
  const query = new URLSearchParams();
  for (const each of status) query.append("status", each);
  for (const [name, value] of Object.entries({ target, model, batch })) {
    if (value !== undefined) query.set(name, value);
  }
  for (const each of label) query.append("label", each);
  return query.size === 0 ? "/jobs" : `/jobs?${query}`;
}

/** Where a search leads: to a job by its id, else to the list with one more filter. */
export function searchAddress(text: string, filters: JobFilters): string {
  const words = text.trim();
  if (isId("job", words)) return `/jobs/${words}`;
  const named = /^(?<name>target|label|batch):\s*(?<value>\S+)$/.exec(words)?.groups;
  const { name = "model", value = words } = named ?? {};
  if (name === "label") return jobListAddress({ ...filters, label: [...filters.label, value] });
  return jobListAddress({ ...filters, [name]: value === "" ? undefined : value });
}
