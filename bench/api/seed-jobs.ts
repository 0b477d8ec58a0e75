import { DatabaseSync } from "node:sqlite";
import { telemetry } from "../../src/contract/jobs/telemetry.ts";
import { openRecords } from "../../src/records/open-records.ts";
import { makeNewBatch, makeNewJob, targets } from "../../test/records/new-jobs.ts";

const jobsPerBatch = 2000;
/** The label that a search has to look for: one job in so many. */
export const rareEvery = 5000;

/** Fills a service's database with jobs that have ended, as large as real ones. */
export async function seedJobs(path: string, count: number): Promise<void> {
  const records = await openRecords(path, { now: () => new Date() });
  for (let first = 0; first < count; first += jobsPerBatch) {
    const jobs = Array.from({ length: Math.min(jobsPerBatch, count - first) }, (_, index) => {
      const number = first + index;
      const labels = { env: "ci", ...(number % rareEvery === 0 && { rare: "yes" }) };
      const target = targets[number % targets.length];
      return makeNewJob({
        kind: number % 10 === 0 ? "quantize" : "compress",
        labels,
        ...(target && { target }),
      });
    });
    await records.batches.create("default", makeNewBatch({ name: "seed", jobs }));
  }
  await records.close();
  const database = new DatabaseSync(path);
  const measuredText = JSON.stringify(telemetry.parse(measured));
  database
    .prepare(
      `update jobs set status = case when rowid % 7 = 0 then 'Failed' else 'Completed' end,
       document = json_set(document, '$.status', 'Completed', '$.telemetry', json(?))`,
    )
    .run(measuredText);
  database.exec("update batches set status = 'Completed'");
  database.close();
}

const figures = { runs: 400, p50Ms: 12.3, p95Ms: 13.1 };
const measured = {
  progress: { fraction: 1 },
  size: { originalBytes: 90_387_606, resultBytes: 22_876_331, ratio: 0.2531, predicted: false },
  accuracy: {
    level: "outputs",
    data: "generated",
    samples: 8,
    sqnrDb: 31.2,
    cosine: 0.9996,
    outputs: [],
  },
  latency: { original: figures, result: figures, ratio: 0.98, ratioLow: 0.97, ratioHigh: 0.99 },
  warnings: [],
};
