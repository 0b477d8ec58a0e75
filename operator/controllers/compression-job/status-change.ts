import {
  type CompressionJob,
  type CompressionJobStatus,
  type Condition,
  conditionTypes,
} from "../../../src/contract/custom-resources.ts";
import type { JobError } from "../../../src/contract/errors.ts";
import { isTerminal, type JobStatus, leadsTo } from "../../../src/contract/status.ts";
import { jobIdOf } from "../../../src/kubernetes/job-identity.ts";
import { withCondition } from "../../../src/kubernetes/with-condition.ts";
import { isWait, kindOfWait, type Wait } from "./waiting.ts";

/** Fields of a status to write; lists are whole. */
export type StatusPatch = Partial<CompressionJobStatus>;

/** Why a job is in its status: a stable code, and the same for people. */
interface Cause {
  readonly reason: string;
  readonly message: string;
}

export interface Move {
  readonly to: JobStatus;
  readonly cause: Cause;
  readonly error?: JobError;
  /** When the work began, milliseconds since 1970. */
  readonly startedAt?: number | undefined;
}

const maxMessage = 1024;

/** Of a reason as statuses have it, the word that conditions and events have: `out_of_memory` is `OutOfMemory`. */
export function pascalCase(reason: string): string {
  return reason.replaceAll(/(^|_)([a-z0-9])/g, (_match, _gap, letter: string) => letter.toUpperCase());
}

/**
 * Takes a job to another status, also past statuses in between that nobody saw: a worker that was not heard may have sharded and
 * optimized all the same. Undefined where the transition table has no way there.
 */
export function moveJob(
  resource: CompressionJob,
  { to, cause, error, startedAt }: Move,
  now: number,
): StatusPatch | undefined {
  const { spec, status, metadata } = resource;
  if (!leadsTo(spec.kind, status.status, to)) return undefined;
  const { reason } = cause;
  const message = cut(cause.message);
  const at = new Date(now).toISOString();
  const began = status.startedAt ?? (startedAt === undefined ? undefined : new Date(startedAt).toISOString());
  return {
    jobId: jobIdOf({ metadata }),
    status: to,
    statusReason: reason,
    statusMessage: message,
    observedGeneration: metadata.generation,
    transitions: [...(status.transitions ?? []), { status: to, at, reason, message }],
    ...(began !== undefined && { startedAt: began }),
    ...(error && { error: { ...error, message: cut(error.message) } }),
    ...(isTerminal(to) && {
      finishedAt: at,
      conditions: conditionsWith(resource, { type: conditionTypes.finished, status: "True", reason: to, message }, now),
    }),
  };
}

/**
 * Says what a job waits for, or that it waits no longer. A Pending job says it in its own words too. Undefined where all that is
 * said already.
 */
export function tellWait(resource: CompressionJob, wait: Wait | undefined, now: number): StatusPatch | undefined {
  const { status, metadata } = resource;
  const patch = { ...waitingWords(status, wait), ...scheduledCondition(resource, wait, now) };
  if (Object.keys(patch).length === 0) return undefined;
  return { jobId: jobIdOf({ metadata }), observedGeneration: metadata.generation, ...patch };
}

const starting: Cause = { reason: "starting", message: "The worker starts" };

function waitingWords(
  { status, statusReason, statusMessage }: CompressionJobStatus,
  wait: Wait | undefined,
): StatusPatch {
  if (status !== "Pending" || (wait === undefined && !isWait(statusReason))) return {};
  const { reason, message } = wait ?? starting;
  if (statusReason === reason && statusMessage === cut(message)) return {};
  return { statusReason: reason, statusMessage: cut(message) };
}

function scheduledCondition(resource: CompressionJob, wait: Wait | undefined, now: number): StatusPatch {
  const before = resource.status.conditions?.find(({ type }) => type === conditionTypes.scheduled);
  const waits = wait !== undefined && !kindOfWait(wait).hasNode;
  if (!waits && before?.status !== "False") return {};
  const { reason, message } = waits ? wait : { reason: "scheduled", message: "Every pod has a node" };
  const told = { status: waits ? "False" : "True", reason: pascalCase(reason), message: cut(message) } as const;
  if (before?.status === told.status && before.reason === told.reason && before.message === told.message) return {};
  return { conditions: conditionsWith(resource, { type: conditionTypes.scheduled, ...told }, now) };
}

function conditionsWith(
  { status, metadata }: CompressionJob,
  told: Pick<Condition, "type" | "status" | "reason" | "message">,
  now: number,
): Condition[] {
  return withCondition(status.conditions, { ...told, observedGeneration: metadata.generation }, new Date(now));
}

function cut(message: string): string {
  return message.length > maxMessage ? `${message.slice(0, maxMessage - 1)}…` : message;
}
