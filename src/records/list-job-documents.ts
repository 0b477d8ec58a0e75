import type { JobQuery } from "../contract/jobs/page.ts";
import { buildPage } from "./build-page.ts";
import { findJobs, type JobSearch } from "./find-jobs.ts";
import type { Store } from "./store.ts";

interface JobDocuments {
  /** The jobs as the contract defines them, or their summaries, as JSON texts. */
  readonly documents: readonly string[];
  readonly nextCursor: string | null;
}

export type JobListQuery = Omit<JobQuery, "view"> & Partial<Pick<JobQuery, "view">>;

interface JobListSearch extends JobSearch {
  readonly query: JobListQuery;
}

/** A page of the jobs that match: nothing parses what a list only passes on. */
export async function listJobDocuments(store: Store, search: JobListSearch): Promise<JobDocuments> {
  const { limit, view = "full" } = search.query;
  const found = await findJobs(store, search, { view, count: limit + 1 });
  const { entries, nextCursor } = buildPage(found, limit);
  return { documents: entries.map(({ text }) => text), nextCursor };
}
