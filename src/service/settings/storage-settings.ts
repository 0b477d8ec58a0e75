import { z } from "zod";
import { projectName } from "../../contract/project.ts";
import type { Kept, KeptTimes, Retention } from "../../records/jobs/retention.ts";
import { text, yaml } from "../../settings/parse-environment.ts";

const dayMs = 86_400_000;
const maxDays = 36_500;
const error = `must be days from 1 to ${maxDays}, or forever`;

const days = z
  .union([z.int({ error }).min(1, { error }).max(maxDays, { error }), z.literal("forever")], {
    error,
  })
  .transform((kept) => (kept === "forever" ? Infinity : kept))
  .exactOptional();

const kinds = {
  jobs: days.describe("Of jobs and batches after their end, with all that they have."),
  logs: days.describe("Of logs after their job's end."),
  artifacts: days.describe("Of artifacts after their job's end."),
  models: days.describe("Of uploaded models after a job last named them, or they were sent."),
};

/** Days for which things are kept; for good without any. */
export const keptDays = z.strictObject({
  ...kinds,
  projects: z
    .record(projectName, z.strictObject(kinds))
    .exactOptional()
    .describe("Other days of projects, such as `{team-a: {logs: 7, jobs: forever}}`."),
});

/** What has which time to live in each project. */
export function buildRetention({ projects = {}, ...times }: z.infer<typeof keptDays>): Retention {
  const own = Object.entries(projects).map(([name, kept]) => [name, inMilliseconds(kept)] as const);
  return { ...inMilliseconds(times), projects: new Map(own) };
}

function inMilliseconds(times: Readonly<Partial<Record<Kept, number>>>): KeptTimes {
  return Object.fromEntries(Object.entries(times).map(([kept, count]) => [kept, count * dayMs]));
}

/** Environment variables that say where the service keeps what, and for how long. */
export const storageSettings = {
  MOS_DATABASE_URL: z
    .url({
      protocol: /^postgres(ql)?$/,
      error: "must be an address such as postgres://user:password@host:5432/name",
    })
    .optional()
    .describe(
      [
        "PostgreSQL database of the records, such as `postgres://user:password@host:5432/name`,",
        "only for this service and its replicas; without it they are in `MOS_DATA_DIR`.",
      ].join(" "),
    ),
  MOS_KEEP_DAYS: yaml(keptDays)
    .prefault("{}")
    .describe(
      [
        "YAML of the days for which things are kept, such as",
        "`{jobs: 90, logs: 30, projects: {team-a: {logs: 7, jobs: forever}}}`;",
        "what is not named is kept for good.",
      ].join(" "),
    ),
};

/** Environment variables of files that say where models come from, and where they are kept. */
export const sourceSettings = {
  MOS_S3_FILE: text
    .optional()
    .describe(
      [
        "YAML file of the bucket that keeps models and artifacts, with its access key; without it",
        "they are in `MOS_DATA_DIR`.",
      ].join(" "),
    ),
  MOS_SOURCE_CREDENTIALS_FILE: text
    .optional()
    .describe(
      [
        "YAML file of the credentials for `s3://`, `gs://` and `hf://` models;",
        "without it there are those of public Hugging Face repositories.",
      ].join(" "),
    ),
};
