import type {
  CompressionJob,
  CompressionJobStatus,
} from "../../../src/contract/compression-job.ts";
import { type Condition, conditionTypes } from "../../../src/contract/condition.ts";
import type { JobError } from "../../../src/contract/errors.ts";
import { isTerminal, type JobStatus, leadsTo } from "../../../src/contract/status.ts";
import { resolveJobId } from "../../../src/resources/job-identity.ts";
import { withCondition } from "../../../src/resources/with-condition.ts";
import { isWaitReason, waitKind, type Wait } from "./find-wait.ts";

/** Fields of a status to write; lists are whole. */
export type StatusPatch = Partial<CompressionJobStatus>;

/** Why a job is in its status: a stable code, and the same for people. */
interface StatusReason {
  readonly reason: string;
  readonly message: string;
}

export interface StatusTransition {
  readonly to: JobStatus;
  readonly cause: StatusReason;
  readonly error?: JobError;
  /** When the work began, milliseconds since 1970. */
  readonly startedAt?: number | undefined;
}

const maxMessage = 1024;

/** Of a reason as statuses have it, the word that conditions and events have: `out_of_memory` is `OutOfMemory`. */
export function pascalCase(reason: string): string {
  return reason.replaceAll(/(^|_)([a-z0-9])/g, (_match, _gap, letter: string) =>
    letter.toUpperCase(),
  );
}

/**
 * Takes a job to another status, also past statuses in between that nobody saw: a worker that was not heard may have sharded and
 * optimized all the same. Undefined where the transition table has no way there.
 */
export function transitionPatch(
  resource: CompressionJob,
  { to, cause, error, startedAt }: StatusTransition,
  now: number,
): StatusPatch | undefined {
  const { spec, status, metadata } = resource;
  if (!leadsTo(spec.kind, status.status, to)) return undefined;
  const { reason } = cause;
  const message = truncateMessage(cause.message);
  const at = new Date(now).toISOString();
  const began =
    status.startedAt ?? (startedAt === undefined ? undefined : new Date(startedAt).toISOString());
  return {
    jobId: resolveJobId({ metadata }),
    status: to,
    statusReason: reason,
    statusMessage: message,
    observedGeneration: metadata.generation,
    transitions: [...(status.transitions ?? []), { status: to, at, reason, message }],
    ...(began !== undefined && { startedAt: began }),
    ...(error && { error: { ...error, message: truncateMessage(error.message) } }),
    ...(isTerminal(to) && {
      finishedAt: at,
      conditions: updateConditions(
        resource,
        { type: conditionTypes.finished, status: "True", reason: to, message },
        now,
      ),
    }),
  };
}

/**
 * Says what a job waits for, or that it waits no longer. A Pending job says it in its own words too. Undefined where all that is
 * said already.
 */
export function waitPatch(
  resource: CompressionJob,
  wait: Wait | undefined,
  now: number,
): StatusPatch | undefined {
  const { status, metadata } = resource;
  const patch = {
    ...pendingReasonPatch(status, wait),
    ...scheduledConditionPatch(resource, wait, now),
  };
  if (Object.keys(patch).length === 0) return undefined;
  return { jobId: resolveJobId({ metadata }), observedGeneration: metadata.generation, ...patch };
}

const starting: StatusReason = { reason: "starting", message: "The worker starts" };

function pendingReasonPatch(
  { status, statusReason, statusMessage }: CompressionJobStatus,
  wait: Wait | undefined,
): StatusPatch {
  if (status !== "Pending" || (wait === undefined && !isWaitReason(statusReason))) return {};
  const { reason, message } = wait ?? starting;
  if (statusReason === reason && statusMessage === truncateMessage(message)) return {};
  return { statusReason: reason, statusMessage: truncateMessage(message) };
}

function scheduledConditionPatch(
  resource: CompressionJob,
  wait: Wait | undefined,
  now: number,
): StatusPatch {
  const before = resource.status.conditions?.find(({ type }) => type === conditionTypes.scheduled);
  const isWaiting = wait !== undefined && !waitKind(wait).hasNode;
  if (!isWaiting && before?.status !== "False") return {};
  const { reason, message } = isWaiting
    ? wait
    : { reason: "scheduled", message: "Every pod has a node" };
  const next = {
    status: isWaiting ? "False" : "True",
    reason: pascalCase(reason),
    message: truncateMessage(message),
  } as const;
  if (
    before?.status === next.status &&
    before.reason === next.reason &&
    before.message === next.message
  )
    return {};
  return {
    conditions: updateConditions(resource, { type: conditionTypes.scheduled, ...next }, now),
  };
}

function updateConditions(
  { status, metadata }: CompressionJob,
  condition: Pick<Condition, "type" | "status" | "reason" | "message">,
  now: number,
): Condition[] {
  return withCondition(
    status.conditions,
    { ...condition, observedGeneration: metadata.generation },
    new Date(now),
  );
}

function truncateMessage(message: string): string {
  return message.length > maxMessage ? `${message.slice(0, maxMessage - 1)}…` : message;
}
