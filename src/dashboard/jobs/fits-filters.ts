import type { ServiceChange } from "../../client/follow-logs.ts";
import type { JobFilters } from "./job-filters.ts";

export type JobChange = NonNullable<ServiceChange["job"]>;

/** Whether a list with the filters has a job that changed, as far as its change says. */
export function fitsFilters(change: JobChange, { status, target, batch, label }: JobFilters) {
  return (
    (status.length === 0 || status.includes(change.status)) &&
    (target === undefined || target === change.target) &&
    (batch === undefined || batch === change.batchId) &&
    label.every((each) => hasLabel(change.labels, each))
  );
}

/** A filter is `key` or `key=value`. */
function hasLabel(labels: Readonly<Record<string, string>>, filter: string): boolean {
  const [key = ""] = filter.split("=", 1);
  return key in labels && (key === filter || filter === `${key}=${labels[key]}`);
}
