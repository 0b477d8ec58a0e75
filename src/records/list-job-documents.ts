import { summarizeJob } from "../contract/job-summary.ts";
import type { JobQuery } from "../contract/page.ts";
import { buildPage } from "./build-page.ts";
import { findJobIds, type JobSearch } from "./find-job-ids.ts";
import { parseJob } from "./parse-job.ts";
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
  const { limit, view } = search.query;
  const ids = await findJobIds(store, search, limit + 1);
  const page = buildPage(
    ids.map((id) => ({ id })),
    limit,
  );
  const pageIds = page.entries.map(({ id }) => id);
  if (pageIds.length === 0) return { documents: [], nextCursor: null };
  const read = view === "summary" ? readJobSummaries : readDocuments;
  return { documents: await read(store, pageIds), nextCursor: page.nextCursor };
}

async function readDocuments({ db }: Store, ids: readonly string[]): Promise<string[]> {
  const rows = await db
    .selectFrom("jobs")
    .select("document")
    .where("id", "in", ids)
    .orderBy("id", "desc")
    .execute();
  return rows.map(({ document }) => document);
}

/** The jobs as rows of lists, as JSON texts, newest first. */
export async function readJobSummaries(
  { db }: Pick<Store, "db">,
  ids: readonly string[],
): Promise<string[]> {
  const rows = await db
    .selectFrom("jobs")
    .select((eb) => [
      "summary",
      eb.case().when("summary", "is", null).then(eb.ref("document")).end().as("document"),
    ])
    .where("id", "in", ids)
    .orderBy("id", "desc")
    .execute();
  return rows.map(({ summary, document }) => {
    return summary ?? JSON.stringify(summarizeJob(parseJob(document ?? "")));
  });
}
