import { z } from "zod";
import { artifact } from "./artifact.ts";
import { jobError } from "./errors.ts";
import { jobId } from "./id.ts";
import { logLine } from "./log.ts";
import { modelReference, sha256 } from "./model.ts";
import { recipe } from "./recipe.ts";
import { jobKind, jobOutcome, workingStatus } from "./status.ts";
import { target } from "./target.ts";
import { telemetry } from "./telemetry.ts";

/** What a worker is to do: the answer to `GET /worker/v1/jobs/{id}`. */
export const assignment = z.object({
  id: jobId,
  kind: jobKind,
  model: modelReference.extend({ name: z.string() }),
  target,
  recipe,
  dryRun: z.boolean().describe("Plan alone, write no model."),
  attempt: z.int().min(1).describe("1 for the first run of the job, one more after each restart."),
  nextSeq: z.int().min(1).describe("Sequence number that the worker's first event must have."),
  nextLogSeq: z.int().min(1).describe("Number that the worker's first log line must have."),
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

const eventBase = { seq: z.int().min(1), at: z.iso.datetime() };

/** What a worker tells the service. Sequence numbers rise by one, so that an event told twice is recorded once. */
export const workerEvent = z.discriminatedUnion("type", [
  z.object({ ...eventBase, type: z.literal("log"), line: logLine }),
  z.object({ ...eventBase, type: z.literal("status"), status: workingStatus }),
  z.object({ ...eventBase, type: z.literal("model"), bytes: z.int(), sha256 }),
  z.object({ ...eventBase, type: z.literal("telemetry"), telemetry: telemetryUpdate }),
  z.object({ ...eventBase, type: z.literal("artifact"), artifact }),
  z.object({ ...eventBase, type: z.literal("result"), outcome: jobOutcome, error: jobError.optional() }),
]);
export type WorkerEvent = z.infer<typeof workerEvent>;

/** Body and answer of `POST /worker/v1/jobs/{id}/events`. */
export const workerEvents = z.object({ events: z.array(workerEvent).min(1).max(1000) });
export const workerEventsAnswer = z.object({
  nextSeq: z.int().describe("The next event that the service waits for; earlier ones are recorded."),
  cancelled: z.boolean().describe("The job was cancelled: stop."),
});

/** Exit codes of a worker; a pod's failure policy reads them. */
export const workerExit = { completed: 0, failed: 10, cancelled: 11, crashed: 70 } as const;
