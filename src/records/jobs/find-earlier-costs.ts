import { isDeepStrictEqual } from "node:util";
import { parseJob } from "./find-record.ts";
import type { EarlierCosts } from "../../contract/worker-protocol/messages.ts";
import type { WriteTransaction } from "../database/store.ts";

/** Newest jobs that are looked at, and those of them that count. */
const looked = { jobs: 20, counted: 5 };

/**
 * What jobs of a job's model name, target and recipe took, the newest first. Up to twenty documents
 * are read.
 */
export async function findEarlierCosts(
  trx: WriteTransaction["trx"],
  jobId: string,
): Promise<EarlierCosts[]> {
  const row = await trx
    .selectFrom("jobs")
    .select(["project", "document"])
    .where("id", "=", jobId)
    .executeTakeFirst();
  if (row === undefined) return [];
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
  return rows
    .map(({ document }) => parseJob(document))
    .filter((job) => isDeepStrictEqual(job.recipe, recipe))
    .flatMap(({ telemetry: { size, usage } }) =>
      usage === undefined || !size?.originalBytes
        ? []
        : [{ ...usage, originalBytes: size.originalBytes }],
    )
    .slice(0, looked.counted);
}
