import { isDeepStrictEqual } from "node:util";
import { parseJob } from "./find-record.ts";
import type { WriteTransaction } from "../database/store.ts";

/** Newest jobs that are looked at, and those of them that count. */
const looked = { jobs: 20, counted: 5 };

/**
 * Seconds for each byte of the model that jobs of a job's model, target and recipe took, the median
 * of the newest ones; null where there are none. Up to twenty documents are read.
 */
export async function findPace(
  trx: WriteTransaction["trx"],
  jobId: string,
): Promise<number | null> {
  const row = await trx
    .selectFrom("jobs")
    .select(["project", "document"])
    .where("id", "=", jobId)
    .executeTakeFirst();
  if (row === undefined) return null;
  const { kind, model, target, recipe } = parseJob(row.document);
  const rows = await trx
    .selectFrom("jobs")
    .select("document")
    .where("project", "=", row.project)
    .where("model_name", "=", model.name)
    .where("status", "=", "Completed")
    .where("kind", "=", kind)
    .where("target", "=", target)
    .orderBy("id", "desc")
    .limit(looked.jobs)
    .execute();
  const paces = rows
    .map(({ document }) => parseJob(document))
    .filter((job) => isDeepStrictEqual(job.recipe, recipe))
    .flatMap(({ model: { bytes }, telemetry: { usage } }) =>
      usage?.seconds === undefined || !bytes ? [] : [usage.seconds / bytes],
    )
    .slice(0, looked.counted)
    .sort((a, b) => a - b);
  return paces[Math.floor(paces.length / 2)] ?? null;
}
