import { z } from "zod";
import { batchId } from "../id.ts";
import { jobSummary } from "../jobs/job-summary.ts";
import { limits } from "../limits.ts";
import { batchSummary } from "./batch.ts";
import { integerParameter } from "../page.ts";
import { revision } from "../revision.ts";

const suiteName = z.string().min(1).max(200);

/** Batches of the same models over time. */
const suite = z
  .object({
    name: suiteName,
    batches: z.int().min(0).describe("Number of its batches."),
    newest: batchSummary
      .pick({ id: true, name: true, status: true, createdAt: true, gatesFailed: true })
      .extend({ revision: revision.nullable() }),
  })
  .meta({ id: "Suite" });
export type Suite = z.infer<typeof suite>;

export const suiteList = z
  .object({
    suites: z
      .array(suite)
      .max(limits.listedSuites)
      .describe(`Those with the newest batches, ${limits.listedSuites} at most.`),
  })
  .meta({ id: "SuiteList" });

export const suiteHistoryQuery = z.strictObject({
  suite: suiteName,
  model: z
    .string()
    .max(200)
    .optional()
    .describe("Name of a model; by default the first one of the newest batch."),
  limit: integerParameter(z.int().min(1).max(limits.historyBatches))
    .default(limits.historyBatches)
    .describe("Number of batches, the newest."),
});
export type SuiteHistoryQuery = z.infer<typeof suiteHistoryQuery>;

const suiteBatch = z.object({
  id: batchId,
  createdAt: z.iso.datetime(),
  revision: revision.nullable(),
  check: z
    .object({
      repository: z.string().describe("As `owner/name`."),
      url: z.url().nullable().describe("Of the check run; null until there is one."),
      commitUrl: z.url(),
    })
    .nullable()
    .describe("The batch's report on GitHub; null where it asked for none."),
});
export type SuiteBatch = z.infer<typeof suiteBatch>;

/** What a model of a suite measured over its batches. */
export const suiteHistory = z
  .object({
    suite: suiteName,
    model: z.string().nullable().describe("Null where the suite has no batch."),
    models: z.array(z.string()).describe("Names of the models of the newest batch."),
    batches: z.array(suiteBatch).describe("Oldest first."),
    jobs: z
      .array(jobSummary)
      .max(limits.historyJobs)
      .describe(
        "The model's jobs of these batches, oldest first: the newest one of each batch and " +
          `target, and of these the newest ${limits.historyJobs}.`,
      ),
  })
  .meta({ id: "SuiteHistory" });
export type SuiteHistory = z.infer<typeof suiteHistory>;
