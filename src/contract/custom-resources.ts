import { z } from "zod";
import { artifact } from "./artifact.ts";
import { batchFields, batchRules, maxBatchJobs } from "./batch.ts";
import { jobError } from "./errors.ts";
import { gateResult } from "./gate.ts";
import { batchId, jobId } from "./id.ts";
import { jobRequest } from "./job.ts";
import { withRules } from "./rule.ts";
import { batchStatus, jobKind, jobStatus, type JobStatus, transition } from "./status.ts";
import { telemetry } from "./telemetry.ts";

export const apiGroup = "modeloptimization.dev";
export const apiVersion = `${apiGroup}/v1`;

/** Labels of what the service and the operator make; few, since each on a Job's pods costs the API server 1 % of the Job's life. */
export const resourceLabels = {
  /** Id of the job in the REST interface. */
  jobId: `${apiGroup}/job-id`,
  /** Id of the batch in the REST interface. */
  batchId: `${apiGroup}/batch-id`,
  /** Name of the CompressionJob that a Job or pod works for, where that is not the job's id; hashed where it is too long for a label. */
  job: `${apiGroup}/job`,
  /** Name of the Batch that a CompressionJob belongs to, hashed where it is too long for a label. */
  batch: `${apiGroup}/batch`,
  /** Step of the work, where several pods work on the job. */
  step: `${apiGroup}/step`,
  /** Set by the Job controller on the pods of Jobs that have several. */
  completionIndex: "batch.kubernetes.io/job-completion-index",
  /** Queue of Kueue: jobs are made suspended and wait to be admitted. */
  queue: "kueue.x-k8s.io/queue-name",
} as const;

/** On the Job of step `shard`: how many pods will optimize a share each, whatever becomes of the target until then. */
export const sharesAnnotation = `${apiGroup}/shares`;

/** Held on a CompressionJob while its logs and result still have to be recorded. */
export const recordFinalizer = `${apiGroup}/record`;

/** Fields of a spec that may change after it was made; all others are immutable. */
const controls = {
  cancel: z.boolean().default(false).describe("Stop the work at once. It cannot be taken back."),
  suspend: z
    .boolean()
    .default(false)
    .describe("Hold the work: pods are stopped, and begin anew when it is false again."),
  ttlSecondsAfterFinished: z
    .int()
    .min(0)
    .max(31_536_000)
    .optional()
    .describe(
      "Seconds after the end at which the resource is deleted; without it, it is kept. The history stays.",
    ),
};
export const mutableFields: readonly string[] = Object.keys(controls);

/** Spec of a CompressionJob: the body of `POST /compress` or `POST /quantize`, its kind, and controls. */
export const compressionJobSpec = z.strictObject({
  kind: jobKind.default("compress"),
  ...jobRequest.shape,
  ...controls,
});
export type CompressionJobSpec = z.infer<typeof compressionJobSpec>;

/** Spec of a Batch: the body of `POST /batches` and controls. */
export const batchSpec = withRules(
  z.strictObject({ ...batchFields.shape, ...controls }),
  batchRules,
);
export type BatchSpec = z.infer<typeof batchSpec>;

/** A condition as Kubernetes' API conventions have it. */
export const condition = z.object({
  type: z.string().min(1).max(64),
  status: z.enum(["True", "False", "Unknown"]),
  observedGeneration: z.int().min(0).optional(),
  lastTransitionTime: z.iso.datetime(),
  reason: z
    .string()
    .min(1)
    .max(64)
    .regex(/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/),
  message: z.string().max(1024),
});
export type Condition = z.infer<typeof condition>;

/**
 * Conditions of a CompressionJob. `Scheduled`: every pod that the step needs has a node. `Finished`: the job has ended.
 * `Recorded`: logs and result are in the service's records, so nothing is lost when pods are deleted.
 * Of a Batch: `Finished`, and `Suspended`: its jobs are held.
 */
export const conditionTypes = {
  scheduled: "Scheduled",
  finished: "Finished",
  recorded: "Recorded",
  suspended: "Suspended",
} as const;

/** Reasons of events and conditions beside those made of status reasons and error codes, and what they mean. */
export const eventReasonTable = {
  Cancelled: "The job was cancelled and none of its processes runs any more.",
  Completed: "The job, or every job of the batch, is Completed.",
  Failed: "The job, or a job of the batch, has failed.",
  FailedCreate: "The batch's next CompressionJob could not be created; it is tried again.",
  JobFailed: "A job of the batch has failed.",
  NameConflict: "Another resource has the name that a job of the batch needs.",
  Recorded: "Logs and result are in the service's records.",
  Resumed: "The batch's jobs go on.",
  Scheduled: "Every pod of the step has a node.",
  Suspended: "The batch's jobs are suspended.",
} as const;
export type EventReason = keyof typeof eventReasonTable;

/** What is known of each job of a Batch, a letter each. */
export const jobStateCodes = {
  notMade: ".",
  made: "m",
  completed: "c",
  gateFailed: "g",
  failed: "f",
  cancelled: "x",
} as const;
export type JobStateCode = (typeof jobStateCodes)[keyof typeof jobStateCodes];

const statusMessage = z.string().max(1024);
const percentText = z.string().max(8);

/** Bounds of lists in a status, so that it stays under 64 KiB. */
export const statusLimits = {
  artifacts: 64,
  warnings: 16,
  transitions: 8,
  gates: 16,
  conditions: 8,
  failures: 20,
} as const;

const conditions = z
  .array(condition)
  .max(statusLimits.conditions)
  .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] });

const statusTelemetry = telemetry
  .omit({ accuracy: true, warnings: true })
  .extend({
    accuracy: telemetry.shape.accuracy.unwrap().omit({ outputs: true }).optional(),
    warnings: z
      .array(z.object({ code: z.string().max(64), message: z.string().max(512) }))
      .max(statusLimits.warnings),
  })
  .partial();

const workTimes = {
  startedAt: z.iso.datetime().optional().describe("When the work began."),
  finishedAt: z.iso.datetime().optional(),
};

/** Status of a CompressionJob. The operator and the service both write it, each by the one transition table. */
export const compressionJobStatus = z.object({
  jobId: jobId.optional().describe("Id of the job in the REST interface."),
  status: jobStatus,
  statusReason: z
    .string()
    .max(64)
    .optional()
    .describe("Stable code that says why the job is in its status."),
  statusMessage: statusMessage
    .optional()
    .describe("The same for people: what a waiting job waits for."),
  observedGeneration: z.int().min(0).optional(),
  progress: percentText.optional().describe("Share of the work that is done, for people: `42%`."),
  ratio: percentText
    .optional()
    .describe("Size of the result relative to the original, for people: `0.27`."),
  ...workTimes,
  transitions: z
    .array(
      transition.extend({
        reason: z.string().max(64).optional(),
        message: statusMessage.optional(),
      }),
    )
    .max(statusLimits.transitions)
    .optional()
    .describe("Every status that the job was seen in, oldest first."),
  telemetry: statusTelemetry
    .optional()
    .describe("Measured facts; the REST interface has all of them."),
  artifacts: z
    .array(artifact)
    .max(statusLimits.artifacts)
    .optional()
    .describe("The first files of the result."),
  gates: z.array(gateResult).max(statusLimits.gates).optional(),
  error: jobError.extend({ message: statusMessage }).optional(),
  conditions: conditions.optional(),
});
export type CompressionJobStatus = z.infer<typeof compressionJobStatus>;

const jobCount = z.int().min(0).max(maxBatchJobs).optional();

/** Status of a Batch. What becomes of each job is in the CompressionJobs that it owns. */
export const batchResourceStatus = z.object({
  batchId: batchId.optional().describe("Id of the batch in the REST interface."),
  status: batchStatus,
  statusMessage: statusMessage.optional(),
  observedGeneration: z.int().min(0).optional(),
  jobs: jobCount.describe("Jobs of the batch: models × targets."),
  finished: z.string().max(16).optional().describe("For people: `37/100`."),
  counts: z
    .strictObject({
      Pending: jobCount,
      Sharding: jobCount,
      Optimizing: jobCount,
      Completed: jobCount,
      Failed: jobCount,
      Cancelling: jobCount,
      Cancelled: jobCount,
    } satisfies Record<JobStatus, z.ZodType>)
    .optional()
    .describe("Number of jobs in each status; jobs that were not made yet count as Pending."),
  gatesFailed: jobCount.describe("Number of jobs with a gate that failed."),
  marks: z
    .string()
    .max(maxBatchJobs)
    .regex(/^[.mcgfx]*$/)
    .optional()
    .describe(
      "A letter for each job, in the order of models × targets: `.` not made yet, `m` made, `c` Completed, `g` Completed with a gate that failed, `f` Failed, `x` Cancelled or never to be made.",
    ),
  failures: z
    .array(
      z.object({
        job: z.string().max(253).describe("Name of the CompressionJob."),
        model: z.string().max(100),
        target: z.string().max(63),
        reason: z.string().max(64),
        message: z.string().max(512),
      }),
    )
    .max(statusLimits.failures)
    .optional()
    .describe("The first jobs that failed."),
  ...workTimes,
  conditions: conditions.optional(),
});
export type BatchResourceStatus = z.infer<typeof batchResourceStatus>;

interface ObjectMeta {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation: number;
  readonly creationTimestamp: string;
  readonly deletionTimestamp?: string;
  readonly finalizers?: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface CompressionJob {
  readonly apiVersion: typeof apiVersion;
  readonly kind: "CompressionJob";
  readonly metadata: ObjectMeta;
  readonly spec: CompressionJobSpec;
  /** The API server fills in Pending where nobody has written a status yet. */
  readonly status: CompressionJobStatus;
}
