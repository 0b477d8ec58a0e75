import { z } from "zod";
import { artifact, maxArtifacts } from "./artifact.ts";
import { baseline } from "./baseline.ts";
import { cancelledBy, createdBy } from "./creation.ts";
import { gateLimits, gateResult } from "./gate.ts";
import { recipe, requestedRecipe } from "./recipe.ts";
import { statusReasonDescription } from "./status-reasons.ts";
import { jobKind, jobStatus, transition } from "./status.ts";
import { targetName } from "./target.ts";
import { telemetry } from "./telemetry.ts";
import { jobError } from "../errors.ts";
import { batchId, jobId } from "../id.ts";
import { textLimits } from "../limits.ts";
import { modelReference, sha256 } from "../models/model.ts";
import { boundedText } from "../text/bounded-text.ts";

const maxLabels = 32;
const labelCharacters = "letters, digits, '.', '_' and '-', with a letter or digit at each end";

export const labels = z
  .record(
    z
      .string()
      .max(63)
      .regex(/^[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?$/, {
        error: `must be 1 to 63 '/', ${labelCharacters}`,
      }),
    z
      .string()
      .max(63)
      .regex(/^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/, {
        error: `must be 0 to 63 ${labelCharacters}`,
      }),
  )
  .refine((all) => Object.keys(all).length <= maxLabels, {
    error: `must not have more than ${maxLabels} entries`,
  })
  .meta({ maxProperties: maxLabels })
  .describe(`Caller's own keys and values, to filter by. At most ${maxLabels}.`);

export const displayName = boundedText({ min: 1, max: textLimits.name }).describe(
  "Name for people; need not be unique.",
);

export const dryRun = z
  .boolean()
  .default(false)
  .describe(
    "Only plan: report the size that the result would have, and what would be done to each " +
      "weight, from the model's graph. No weight is read, no model is written, no pipeline is " +
      "planned, and neither models nor gates are evaluated.",
  );

export const deadlineSeconds = z
  .int()
  .min(1)
  .max(604_800)
  .optional()
  .describe(
    "Seconds of work after which the job is stopped and fails with `deadline_exceeded`. " +
      "Waiting does not count, nor does work that was lost with a restart or a deleted pod.",
  );

/** Body of `POST /compress` and `POST /quantize`, and the spec of a CompressionJob. */
export const jobRequest = z
  .strictObject({
    name: displayName.optional(),
    model: modelReference.describe("What is compressed."),
    target: targetName,
    recipe: requestedRecipe
      .optional()
      .describe(
        "What to do to the model. Fields that are left out come from the target's default recipe.",
      ),
    gates: gateLimits
      .optional()
      .describe("Limits on what is measured; the job's `gates` say which are met."),
    dryRun,
    deadlineSeconds,
    labels: labels.optional(),
  })
  .meta({ id: "JobRequest" });
export type JobRequest = z.infer<typeof jobRequest>;

/** One model compressed for one target by one recipe. */
export const job = z
  .object({
    id: jobId,
    kind: jobKind,
    name: displayName,
    status: jobStatus,
    statusReason: z.string().describe(statusReasonDescription),
    statusMessage: z.string().describe("The same for people."),
    batchId: batchId.nullable(),
    model: z.object({
      ...modelReference.shape,
      name: z.string().describe("The request's, or the file's."),
      bytes: z
        .int()
        .nullable()
        .describe("Size of the file and its external data; null until it was fetched."),
      actualSha256: sha256
        .nullable()
        .describe("SHA-256 of the file that was fetched, or of the list of a folder's files."),
    }),
    target: targetName,
    recipe: recipe.describe(
      "The effective recipe: the request's fields override the preset's, and those the target's.",
    ),
    gateLimits,
    dryRun: dryRun.describe("Whether the job only plans; its one artifact is the report then."),
    deadlineSeconds,
    labels: z.record(z.string(), z.string()).describe("The request's own keys and values."),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime().describe("When the job or its telemetry last changed."),
    startedAt: z.iso.datetime().nullable().describe("When the job left Pending for work."),
    finishedAt: z.iso
      .datetime()
      .nullable()
      .describe("When the job became Completed, Failed or Cancelled; null until then."),
    transitions: z.array(transition).describe("Every status the job has had, oldest first."),
    telemetry,
    artifacts: z
      .array(artifact)
      .max(maxArtifacts)
      .describe("Files that the job has produced so far."),
    baseline: baseline
      .nullable()
      .default(null)
      .describe(
        "What the job is compared with, found when its batch was created; null if there is none.",
      ),
    gates: z
      .array(gateResult)
      .describe("Results of the gates; empty until the job is Completed, and in a dry run."),
    error: jobError.nullable().describe("Why the job is Failed; null for all others."),
    createdBy,
    cancelledBy,
  })
  .meta({ id: "Job" });
export type Job = z.infer<typeof job>;

/** A job as its own resource shows it. */
export const jobDetail = job
  .extend({
    queuePosition: z
      .int()
      .min(1)
      .nullable()
      .default(null)
      .describe(
        "Place among the jobs that wait for a worker of this machine: 1 starts next. Null for a " +
          "job that does not wait, and in a cluster. Projects take turns, so that jobs of other " +
          "projects may still come before it.",
      ),
  })
  .meta({ id: "JobDetail" });
export type JobDetail = z.infer<typeof jobDetail>;
