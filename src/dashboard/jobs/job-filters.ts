import { jobStatus, type JobStatus } from "../../contract/jobs/status.ts";
import { isId } from "../../contract/id.ts";

/** What the list of jobs is restricted to; its address says it. */
export interface JobFilters {
  readonly status: readonly JobStatus[];
  readonly target: string | undefined;
  readonly model: string | undefined;
  readonly batch: string | undefined;
  readonly label: readonly string[];
  /** Texts that the model's name contains. */
  readonly search: readonly string[];
  readonly sort: JobOrder;
}

/** Orders of the list besides that of the service, which is the newest first. */
export const jobOrders = ["newest", "smallest", "most accurate", "fastest", "longest"] as const;
export type JobOrder = (typeof jobOrders)[number];

/** Groups of statuses that people ask for. */
export const statusTabs: Readonly<Record<string, readonly JobStatus[]>> = {
  All: [],
  Pending: ["Pending"],
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
    search: searchParams.getAll("search").filter((text) => text !== ""),
    sort: jobOrders.find((order) => order === searchParams.get("sort")) ?? "newest",
  };
}

/** The address of the list with some filters. */
export function jobListAddress({ status, target, model, batch, ...lists }: JobFilters): string {
  const query = new URLSearchParams();
  for (const each of status) query.append("status", each);
  for (const [name, value] of Object.entries({ target, model, batch })) {
    if (value !== undefined) query.set(name, value);
  }
  for (const each of lists.label) query.append("label", each);
  for (const each of lists.search) query.append("search", each);
  if (lists.sort !== "newest") query.set("sort", lists.sort);
  return query.size === 0 ? "/jobs" : `/jobs?${query}`;
}

const filterNames = ["status", "target", "model", "batch", "label"] as const;
type FilterName = (typeof filterNames)[number];

/** Where a search leads, or what of it is not understood. */
export type FoundSearch = { readonly address: string } | { readonly problem: string };

/**
 * Where a search leads: to a job by its id, else to the list with one more filter for each word.
 * A word is `key:value`, or a part of a model's name.
 */
export function readSearch(text: string, filters: JobFilters): FoundSearch {
  const words = text
    .trim()
    .replaceAll(/:\s+/g, ":")
    .split(/\s+/)
    .filter((word) => word !== "");
  const [first = ""] = words;
  if (words.length === 1 && isId("job", first)) return { address: `/jobs/${first}` };
  let found = filters;
  for (const word of words) {
    const next = addWord(found, word);
    if (typeof next === "string") return { problem: next };
    found = next;
  }
  return { address: jobListAddress(found) };
}

/** The filters with those of a word, or what is wrong with it. */
function addWord(filters: JobFilters, word: string): JobFilters | string {
  // Addresses of models have colons too.
  if (isId("batch", word)) return { ...filters, batch: word };
  if (/^(upload:|\w+:\/\/)/.test(word)) return { ...filters, model: word };
  const { name, value } = /^(?<name>[^:]*):(?<value>.*)$/.exec(word)?.groups ?? {};
  if (name === undefined || value === undefined) {
    return { ...filters, search: [...new Set([...filters.search, word])] };
  }
  const known = filterNames.find((each) => each === name.toLowerCase());
  if (known === undefined) {
    return `There is no filter "${name}". Filters are ${filterNames.join(", ")}, as in target:cpu.`;
  }
  if (value === "") return `Write the ${known} after the colon: ${known}:…`;
  return addFilter(filters, known, value);
}

function addFilter(filters: JobFilters, name: FilterName, value: string): JobFilters | string {
  if (name === "label") return { ...filters, label: [...new Set([...filters.label, value])] };
  if (name !== "status") return { ...filters, [name]: value };
  const status = jobStatus.options.filter((each) => each.toLowerCase() === value.toLowerCase());
  if (status.length > 0) return { ...filters, status };
  return `"${value}" is not a status. Statuses are ${jobStatus.options.join(", ")}.`;
}
