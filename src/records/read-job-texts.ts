import type { SelectQueryBuilder } from "kysely";
import { summarizeJob } from "../contract/job-summary.ts";
import type { JobQuery } from "../contract/page.ts";
import { parseJob } from "./parse-job.ts";
import type { Schema } from "./schema.ts";
import type { Store } from "./store.ts";

/** Ids, or a query for them. */
type Ids = readonly string[] | SelectQueryBuilder<Schema, "jobs", { id: string }>;

export interface JobText {
  readonly id: string;
  /** The job as the contract defines it, or its summary, as JSON. */
  readonly text: string;
}

/** Jobs as lists show them, in no order. */
export function readJobTexts(
  store: Pick<Store, "db">,
  view: JobQuery["view"],
  ids: Ids,
): Promise<JobText[]> {
  return view === "summary" ? readSummaries(store, ids) : readDocuments(store, ids);
}

function readDocuments({ db }: Pick<Store, "db">, ids: Ids): Promise<JobText[]> {
  return db.selectFrom("jobs").select(["id", "document as text"]).where("id", "in", ids).execute();
}

async function readSummaries({ db }: Pick<Store, "db">, ids: Ids): Promise<JobText[]> {
  const rows = await db
    .selectFrom("jobs")
    .select((eb) => [
      "id",
      "summary",
      eb.case().when("summary", "is", null).then(eb.ref("document")).end().as("document"),
    ])
    .where("id", "in", ids)
    .execute();
  return rows.map(({ id, summary, document }) => {
    return { id, text: summary ?? JSON.stringify(summarizeJob(parseJob(document ?? ""))) };
  });
}
