import { z } from "zod";
import {
  type apiVersion,
  observedGeneration,
  statusLimits,
  statusMessage,
  workTimes,
} from "./api-group.ts";
import { artifact } from "../jobs/artifact.ts";
import { conditions, type ConditionType, outcomeConditions } from "./condition.ts";
import { describeChoices } from "../text/describe-choices.ts";
import { jobError } from "../errors.ts";
import { gateResult } from "../jobs/gate.ts";
import { jobId } from "../id.ts";
import { jobRequest } from "../jobs/job.ts";
import { textLimits } from "../limits.ts";
import { resourceControls } from "./resource-controls.ts";
import { statusReasonDescription } from "../jobs/status-reasons.ts";
import { jobKind, jobStatus, transition } from "../jobs/status.ts";
import { telemetry } from "../jobs/telemetry.ts";

/** Spec of a CompressionJob: kind, body of `POST /compress` or `POST /quantize`, and controls. */
export const compressionJobSpec = z.strictObject({
  kind: jobKind.default("compress"),
  ...jobRequest.shape,
  ...resourceControls,
});
export type CompressionJobSpec = z.infer<typeof compressionJobSpec>;

/** Conditions of a CompressionJob, and what each means. */
const jobConditionTable = {
  Scheduled: "every pod that the step needs has a node",
  Suspended: "the job is suspended",
  Finished: "the job has ended",
  ...outcomeConditions,
} satisfies Partial<Record<ConditionType, string>>;

const percentText = z.string().max(8);

const statusTelemetry = telemetry
  .omit({
    accuracy: true,
    calibration: true,
    qdq: true,
    generated: true,
    search: true,
    warnings: true,
    modelDiff: true,
  })
  .extend({
    accuracy: telemetry.shape.accuracy
      .unwrap()
      .omit({ outputs: true, notExercised: true, language: true })
      .optional()
      .describe("How far the result is from the original."),
    warnings: z
      .array(
        z.object({
          code: z.string().max(textLimits.reason).describe("Stable code."),
          message: z.string().max(textLimits.telemetryWarning).describe("The same for people."),
        }),
      )
      .max(statusLimits.warnings)
      .describe("What to know about the result."),
  })
  .partial();

const transitions = z
  .array(
    transition.extend({
      reason: z.string().max(textLimits.reason).optional().describe("Stable code that says why."),
      message: statusMessage.optional().describe("The same for people."),
    }),
  )
  .max(statusLimits.transitions);

const resourceError = jobError
  .extend({ message: statusMessage.describe("The same for people.") })
  .describe("Why the job is Failed; absent from all others.");

/** A figure that there is not is absent: the API server takes no null from a merge patch. */
const resourceGateResult = gateResult.omit({ interval: true }).extend({
  actual: z
    .number()
    .optional()
    .describe(
      "The measured figure, or how much worse than the baseline's it is; absent where it was not " +
        "measured, which fails the gate.",
    ),
  baseline: z
    .number()
    .optional()
    .describe("The baseline's figure: bytes, dB or milliseconds; absent for other gates."),
});

/** What the service recorded of a job's work: the part of the status that only it writes. */
const jobReport = z.object({
  transitions: transitions
    .max(statusLimits.reportedTransitions)
    .optional()
    .describe("Statuses of the job in the service's records since it last waited, oldest first."),
  startedAt: workTimes.startedAt,
  progress: percentText
    .optional()
    .describe("Share of the work that was done when the job ended, for people: `42%`."),
  ratio: percentText
    .optional()
    .describe("Size of the result relative to the original, for people: `0.27`."),
  telemetry: statusTelemetry
    .optional()
    .describe(
      "Measured facts, once the job has ended; the REST interface has all of them. Before its end " +
        "a job of several pods has what the last of them was forecast to take.",
    ),
  artifacts: z
    .array(artifact)
    .max(statusLimits.artifacts)
    .optional()
    .describe("The first files of the result, once the job has ended."),
  gates: z
    .array(resourceGateResult)
    .max(statusLimits.gates)
    .optional()
    .describe("Results of the gates, once the job is Completed."),
  error: resourceError.optional(),
  recorded: z
    .boolean()
    .optional()
    .describe(
      "Whether all logs and the result are in the service's records, so that nothing is lost when " +
        "pods are deleted.",
    ),
});
export type JobReport = z.infer<typeof jobReport>;

/** Pods that a job has lost. */
const jobAttempts = z.object({
  count: z
    .int()
    .min(1)
    .describe("How often work was begun: by the first pods, and by each in place of a lost one."),
  lost: z.int().min(1).describe("Pods that were lost."),
  pod: z.string().max(253).describe("The last pod that was lost."),
  at: z.iso.datetime().describe("When it was lost."),
  reason: z
    .string()
    .max(textLimits.reason)
    .describe(
      "Why: an error code, or the cluster's reason, such as `EvictionByEvictionAPI` " +
        "or `PreemptionByScheduler`.",
    ),
  message: z.string().max(textLimits.conditionMessage).describe("The same for people."),
});
export type JobAttempts = z.infer<typeof jobAttempts>;

/** Status of a CompressionJob. The operator writes it, but for `report`. */
export const compressionJobStatus = z.object({
  jobId: jobId.optional().describe("Id of the job in the REST interface."),
  status: jobStatus,
  statusReason: z.string().max(textLimits.reason).optional().describe(statusReasonDescription),
  statusMessage: statusMessage
    .optional()
    .describe("The same for people: what a waiting job waits for."),
  observedGeneration,
  ...workTimes,
  transitions: transitions.optional().describe("The last statuses of the job, oldest first."),
  report: jobReport
    .optional()
    .describe("What the service recorded of the job's work. Only the service writes it."),
  error: resourceError.optional(),
  attempts: jobAttempts
    .optional()
    .describe("Pods that were lost before the job's end; without the field none was."),
  conditions: conditions.optional().describe(describeChoices(jobConditionTable)),
});
export type CompressionJobStatus = z.infer<typeof compressionJobStatus>;

interface OwnerReference {
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
}

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
  readonly ownerReferences?: readonly OwnerReference[];
}

export interface CompressionJob {
  readonly apiVersion: typeof apiVersion;
  readonly kind: "CompressionJob";
  readonly metadata: ObjectMeta;
  readonly spec: CompressionJobSpec;
  /** Pending by default, before a controller has written it. */
  readonly status: CompressionJobStatus;
}
