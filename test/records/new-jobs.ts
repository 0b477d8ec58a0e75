import type { JobPage, JobQuery } from "../../src/contract/jobs/job-lists.ts";
import type { Target } from "../../src/contract/jobs/target.ts";
import { defaultRecipe } from "../../src/contract/jobs/resolve-recipe.ts";
import type { NewJob } from "../../src/records/jobs/insert-jobs.ts";
import type { NewBatch } from "../../src/records/jobs/insert-batch.ts";
import { openRecords, type Records } from "../../src/records/open-records.ts";
import { testDatabase } from "../support/test-database.ts";
import { parseJob } from "../../src/records/jobs/find-record.ts";
import { readLog } from "./read-log.ts";

const target: Target = {
  name: "cpu",
  description: "Any CPU",
  executionProvider: "cpu",
  operators: "standard",
  recipe: {},
  presets: {},
};
export const targets: readonly Target[] = [
  target,
  { ...target, name: "cpu-int8", operators: "contrib" },
];

export function makeNewJob(overrides: Partial<NewJob> = {}): NewJob {
  return {
    kind: "compress",
    name: "detector for CPUs",
    model: { source: "https://models.test/detector.onnx", name: "detector.onnx" },
    target,
    recipe: defaultRecipe,
    gateLimits: {},
    dryRun: false,
    labels: {},
    ...overrides,
  };
}

export function makeNewBatch(overrides: Partial<NewBatch> = {}): NewBatch {
  return {
    name: "nightly",
    suite: null,
    revision: null,
    kind: "compress",
    failFast: false,
    labels: {},
    jobs: [makeNewJob(), makeNewJob(), makeNewJob()],
    ...overrides,
  };
}

/**
 * Records in memory. Their clock advances by a millisecond at each call, so that ids follow the order
 * of creation.
 */
export async function openTestRecords(start = "2026-03-01T00:00:00.000Z") {
  let time = Date.parse(start);
  return openRecords(await testDatabase(), { now: () => new Date(time++) });
}

export async function readLogTexts(records: Records, id: string): Promise<string[]> {
  return (await readLog(records, id)).map(({ text }) => text);
}

export async function listJobs(
  { jobs }: Pick<Records, "jobs">,
  project: string,
  query: Omit<JobQuery, "view">,
): Promise<JobPage> {
  const { documents, nextCursor } = await jobs.list(project, query);
  return { jobs: documents.map(parseJob), nextCursor };
}
