import { z } from "zod";
import { projectName } from "../../contract/project.ts";
import type { Kept, KeptTimes, Retention } from "../../records/jobs/retention.ts";
import { number, text } from "../../settings/parse-environment.ts";

const dayMs = 86_400_000;
const maxDays = 36_500;
const forever = "forever";
/** Stands for all projects that are not named. */
const others = "";

/** For each project, the days for which something is kept; `Infinity` for good. */
type KeptDays = ReadonlyMap<string, number>;

/** Days of all projects, of some, or both: `30`, `team-a=7`, `30,team-a=7,team-b=forever`. */
export const keptDays = z.string().transform((list, context): KeptDays => {
  const days = new Map<string, number>();
  for (const entry of list.split(",")) {
    const [, name = others, text = ""] = /^(?:([^=]+)=)?(\w+)$/.exec(entry.trim()) ?? [];
    const kept = parseKeptDays(text);
    const isName = name === others || projectName.safeParse(name).success;
    if (kept === undefined || !isName || days.has(name)) {
      const allowed = `days from 1 to ${maxDays}, or ${forever}`;
      context.addIssue(`must be ${allowed}; and for each project besides at most one PROJECT=DAYS`);
      return z.NEVER;
    }
    days.set(name, kept);
  }
  return days;
});

function parseKeptDays(text: string): number | undefined {
  if (text === forever) return Infinity;
  const days = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return days >= 1 && days <= maxDays ? days : undefined;
}

/** What has which time to live in each project. */
export function buildRetention(settings: Readonly<Record<Kept, KeptDays | undefined>>): Retention {
  const kinds = ["jobs", "logs", "artifacts", "models"] as const;
  const names = new Set(kinds.flatMap((kept) => [...(settings[kept]?.keys() ?? [])]));
  const readTimes = (name: string): KeptTimes =>
    Object.fromEntries(
      kinds.map((kept) => {
        const days = settings[kept]?.get(name);
        return [kept, days === undefined ? undefined : days * dayMs];
      }),
    );
  const projects = [...names].filter((name) => name !== others);
  return {
    ...readTimes(others),
    projects: new Map(projects.map((name) => [name, readTimes(name)])),
  };
}

function days(kept: string) {
  return keptDays
    .optional()
    .describe(
      [
        `Days for which ${kept}; without it for good. Projects have others in a list such as`,
        "`30,team-a=7,team-b=forever`.",
      ].join(" "),
    );
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
        "for this service and its replicas alone; without it they are in `MOS_DATA_DIR`.",
      ].join(" "),
    ),
  MOS_DISK_RESERVE_BYTES: number
    .pipe(z.int().min(0))
    .default(256 * 1024 ** 2)
    .describe(
      [
        "Bytes of the disk that uploads, results and new jobs leave free for records of what runs,",
        "at most a tenth of the disk.",
      ].join(" "),
    ),
  MOS_KEEP_JOBS_DAYS: days(
    "jobs and batches are kept after their end, with logs, artifacts and baselines",
  ),
  MOS_KEEP_LOGS_DAYS: days("logs of jobs are kept after their end"),
  MOS_KEEP_ARTIFACTS_DAYS: days("artifacts of jobs are kept after their end"),
  MOS_KEEP_MODELS_DAYS: days("uploaded models are kept after a job last named them"),
};

/** Environment variables of the bucket that keeps models and artifacts in place of a folder. */
export const s3Settings = {
  MOS_S3_BUCKET: z
    .string()
    .regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, {
      error: "must be 3 to 63 lower-case letters, digits, '.' and '-', none of these two at an end",
    })
    .optional()
    .describe(
      [
        "Bucket of an S3 server that keeps models and artifacts;",
        "without it they are in `MOS_DATA_DIR`.",
      ].join(" "),
    ),
  MOS_S3_ENDPOINT: z
    .url({ protocol: /^https?$/ })
    .default("https://s3.amazonaws.com")
    .describe("Address of the S3 server, which workers reach too: they read and send files there."),
  MOS_S3_REGION: text.default("us-east-1").describe("Region of the bucket."),
  MOS_S3_PATH_STYLE: z
    .enum(["true", "false"])
    .default("true")
    .transform((isPathStyle) => isPathStyle === "true")
    .describe("Whether addresses have the bucket in their path (`true`) or in their host."),
  MOS_S3_ACCESS_KEY_ID: text.optional().describe("Id of the access key for the bucket."),
  MOS_S3_SECRET_ACCESS_KEY_FILE: text
    .optional()
    .describe("File with the secret of the access key."),
  MOS_SOURCE_CREDENTIALS_FILE: text
    .optional()
    .describe(
      [
        "YAML file of the credentials for `s3://`, `gs://` and `hf://` models;",
        "without it there are those of public Hugging Face repositories.",
      ].join(" "),
    ),
};
