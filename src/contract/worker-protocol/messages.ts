import { z } from "zod";
import { artifact } from "../jobs/artifact.ts";
import { gateLimits } from "../jobs/gate.ts";
import { logLine, reportedLine } from "../jobs/log.ts";
import { recipe } from "../jobs/recipe.ts";
import { jobKind, jobOutcome, workingStatus } from "../jobs/status.ts";
import { target } from "../jobs/target.ts";
import { endedStage, jobCosts, telemetry } from "../jobs/telemetry.ts";
import { jobError } from "../errors.ts";
import { jobId } from "../id.ts";
import { textLimits } from "../limits.ts";
import { modelFile } from "../models/manifest.ts";
import { modelReference, sha256 } from "../models/model.ts";
import { jsonValue } from "../text/json-value.ts";
import { shownLine } from "../text/shown-line.ts";

/** A worker's share of a job that several pods work on; the steps follow one another. */
export const workerStep = z.enum(["shard", "optimize", "assemble"]);
export type WorkerStep = z.infer<typeof workerStep>;

/** Outcome of a pod's share of the weights: a blob with the new forms, in the order of the plan. */
export const optimizedShare = z.object({
  index: z.int().min(0).describe("Number of the share, from 0."),
  sha256,
  bytes: z.int().min(0),
});
export type OptimizedShare = z.infer<typeof optimizedShare>;

/**
 * What the shard step stored of the model for the later ones: a blob with all but the content of
 * its large tensors, which they fetch by ranges.
 */
const modelOutline = z.object({ sha256, bytes: z.int().min(0) });
export type ModelOutline = z.infer<typeof modelOutline>;

const earlierCosts = jobCosts.extend({
  originalBytes: z.int().min(1).describe("Of the model that the job had."),
});
export type EarlierCosts = z.infer<typeof earlierCosts>;

/** What a worker is to do: the answer to `GET /worker/v1/jobs/{id}`. */
export const assignment = z.object({
  id: jobId,
  kind: jobKind,
  model: modelReference.extend({
    name: z.string(),
    files: z
      .array(modelFile)
      .optional()
      .describe("Where the source is a manifest: what it names, the ONNX file first."),
  }),
  target,
  recipe,
  dryRun: z.boolean().describe("Only plan, write no model."),
  attempt: z
    .int()
    .min(1)
    .describe("1 for the first worker of the job, one more for each after it."),
  part: z
    .object({
      step: workerStep,
      index: z.int().min(0).describe("Number of the share, from 0; 0 for steps of one pod."),
      shares: z
        .array(optimizedShare)
        .describe(
          "For `assemble`: every share, in order. For `optimize`: its own, where an earlier pod " +
            "has finished it.",
        ),
      outline: modelOutline
        .nullable()
        .describe("For the steps after `shard`; null where they read the model where it is."),
    })
    .nullable()
    .describe("The worker's part of the job; null where it does all of it."),
  baseline: z
    .array(artifact.pick({ name: true, sha256: true }))
    .nullable()
    .describe(
      "Files of the baseline's result, the ONNX file first, to time the job's result against; " +
        "null where no gate compares their latency.",
    ),
  latencyLimits: gateLimits
    .pick({ maxLatencyRatio: true, maxLatencyRegression: true })
    .describe("Timing continues within its budget until the figures are on one side of them."),
  comparison: z
    .object({
      description: sha256
        .nullable()
        .describe("Of the baseline's `description.json`; null where it has none."),
    })
    .nullable()
    .describe("How the model is compared with those of other commits; null where it is not."),
  earlierCosts: z
    .array(earlierCosts)
    .default([])
    .describe("What the last jobs of the same model name, target and recipe took."),
  limits: z.object({
    maxModelBytes: z.int(),
    allowedRoots: z.array(z.string()).describe("Folders under which `file://` models may lie."),
    allowPrivateAddresses: z.boolean(),
  }),
});
export type Assignment = z.infer<typeof assignment>;

/** Facts that a worker measured; each replaces the one of the same name. */
export const telemetryUpdate = telemetry.partial();
export type TelemetryUpdate = z.infer<typeof telemetryUpdate>;

/** An error as a worker reports it; what runs the model could have written its message. */
const workerError = (maxLength: number) => jobError.extend({ message: shownLine(maxLength) });

/** Most events of a worker: of an integer column of the records. */
const maxSeq = 2 ** 31 - 2;

const eventBase = { seq: z.int().min(1).max(maxSeq), at: z.iso.datetime().max(30) };

/**
 * What a worker reports to the service. Sequence numbers rise by one from 1, so that an event that
 * is reported twice is recorded once. The code of a model's author could have written it: each text
 * is one visible line with a limit, each number has a range and each list a length.
 */
export const workerEvent = z.discriminatedUnion("type", [
  z.object({
    ...eventBase,
    type: z.literal("log"),
    stream: logLine.shape.stream,
    text: reportedLine,
  }),
  z.object({ ...eventBase, type: z.literal("status"), status: workingStatus }),
  z.object({ ...eventBase, type: z.literal("model"), bytes: z.int().min(0), sha256 }),
  z.object({
    ...eventBase,
    type: z.literal("telemetry"),
    telemetry: telemetryUpdate,
    stage: endedStage.optional(),
  }),
  z.object({ ...eventBase, type: z.literal("artifact"), artifact }),
  z.object({ ...eventBase, type: z.literal("outline"), outline: modelOutline }),
  z.object({ ...eventBase, type: z.literal("share"), share: optimizedShare }),
  z.object({
    ...eventBase,
    type: z.literal("result"),
    outcome: jobOutcome,
    error: workerError(textLimits.errorMessage).optional(),
  }),
]);
export type WorkerEvent = z.infer<typeof workerEvent>;

type Unnumbered<Event> = Event extends unknown ? Omit<Event, "seq" | "at"> : never;

/** An event before it has its number and time. */
export type UnnumberedEvent = Unnumbered<WorkerEvent>;

/** Body and answer of `POST /worker/v1/jobs/{id}/events`. Without events it is a heartbeat. */
export const workerEvents = z.object({ events: z.array(workerEvent).max(1000) });
export const workerEventsAnswer = z.object({
  nextSeq: z
    .int()
    .describe("The next event that the service waits for; earlier ones are recorded."),
  cancelled: z.boolean().describe("The job was cancelled: stop."),
});

/** A pod's termination message (JSON): the result, also where the worker could not report it. */
export const terminationMessage = z.object({
  outcome: jobOutcome,
  error: workerError(textLimits.statusMessage).optional(),
  lastSeq: z.int().min(0).max(maxSeq).describe("Sequence number of the worker's last event."),
  delivered: z
    .boolean()
    .optional()
    .describe("Whether the service confirmed that it recorded all events, the result too."),
});
export type TerminationMessage = z.infer<typeof terminationMessage>;

const terminationText = jsonValue.pipe(terminationMessage);

/**
 * Parses the termination message of a worker in the status of its pod; undefined where the text is
 * another one, such as the end of the container's output.
 */
export function readTerminationMessage(text: string | undefined): TerminationMessage | undefined {
  return text === undefined ? undefined : terminationText.safeParse(text).data;
}

/** In the folder of a job on this machine: what its worker keeps for the next attempt. */
export const keptFolder = "kept";

/** Name of the worker's container in its pod. */
export const workerContainer = "worker";

/** Audience of the service-account tokens that workers in pods authenticate with. */
export const workerTokenAudience = "model-optimization-worker";

/**
 * A stopped worker in a pod delivers its last events for so long, and has the rest of the pod's
 * grace period to end.
 */
export const workerStop = { deliverySeconds: 25, graceSeconds: 30 } as const;
