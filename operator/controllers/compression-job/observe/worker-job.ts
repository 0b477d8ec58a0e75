import type { JobSettings } from "./job-settings.ts";
import {
  resourceLabels,
  sharesAnnotation,
  syncRequestAnnotation,
} from "../../../../src/contract/custom-resources/resource-labels.ts";
import type { Stored } from "../../../../src/kubernetes/resources.ts";
import { compressionJobs } from "../../../../src/resources/custom-resources.ts";
import { type JobStep, jobStep } from "../../../../src/resources/job-identity.ts";
import {
  type ObservedWorkerJob,
  workerJobFinishedConditions,
} from "../../../../src/resources/observed-resources.ts";

/** How a Job ended, as its conditions have it. */
interface WorkerJobEnd {
  readonly complete: boolean;
  readonly reason: string;
  readonly message: string;
  readonly at: number;
}

/** What decisions need of a `batch/v1` Job. Times are milliseconds since 1970. */
export interface WorkerJob {
  readonly name: string;
  readonly uid: string;
  readonly controller:
    | { readonly kind: string; readonly name: string; readonly uid: string }
    | undefined;
  /** Under which its pods run; empty where it names none. */
  readonly serviceAccount: string;
  readonly step: JobStep | undefined;
  readonly parallelism: number;
  /** Kueue's queue that admits it; Kueue may have given it one of the namespace. */
  readonly queue: string | undefined;
  readonly deleting: boolean;
  readonly suspended: boolean;
  /** Whether the operator has made it end. */
  readonly ending: boolean;
  readonly createdAt: number;
  readonly startedAt: number | undefined;
  /** When the operator last asked for it to be synced. */
  readonly syncRequestedAt: number | undefined;
  readonly end: WorkerJobEnd | undefined;
}

/** The deadline that ends a Job at once. A policy of the cluster may give Jobs longer ones. */
export const endingDeadlineSeconds = 1;

export function toWorkerJob({ metadata, spec, status }: Stored<ObservedWorkerJob>): WorkerJob {
  const controller = metadata.ownerReferences?.find((owner) => owner.controller);
  return {
    name: metadata.name,
    uid: metadata.uid,
    controller: controller && { kind: controller.kind, name: controller.name, uid: controller.uid },
    serviceAccount: readServiceAccount(spec),
    step: jobStep.options.find(
      (step) => step === (metadata.labels?.[resourceLabels.step] ?? "work"),
    ),
    parallelism: Number(metadata.annotations?.[sharesAnnotation] ?? spec?.completions ?? 1),
    queue: metadata.labels?.[resourceLabels.queue],
    deleting: metadata.deletionTimestamp !== undefined,
    suspended: spec?.suspend === true,
    ending: spec?.activeDeadlineSeconds === endingDeadlineSeconds,
    createdAt: Date.parse(metadata.creationTimestamp),
    startedAt: parseOptionalTime(status?.startTime),
    syncRequestedAt: parseOptionalTime(metadata.annotations?.[syncRequestAnnotation]),
    end: readWorkerJobEnd(status?.conditions, metadata.deletionTimestamp),
  };
}

function readServiceAccount({ template }: ObservedWorkerJob["spec"] = {}): string {
  return template?.spec?.serviceAccountName ?? "";
}

/** Undefined too where the Job failed because it was deleted. */
function readWorkerJobEnd(
  conditions: NonNullable<ObservedWorkerJob["status"]>["conditions"],
  deletedAt: string | undefined,
): WorkerJobEnd | undefined {
  const condition = conditions?.find(
    ({ type, status }) => status === "True" && workerJobFinishedConditions.includes(type),
  );
  if (condition === undefined) return undefined;
  const complete = condition.type === "Complete";
  const at = Date.parse(condition.lastTransitionTime ?? "");
  if (!complete && deletedAt !== undefined && at >= Date.parse(deletedAt)) return undefined;
  return { complete, reason: condition.reason ?? "", message: condition.message ?? "", at };
}

/**
 * Whether an operator of this installation created the Job. Who may create Jobs writes any label
 * and owner, but an admission policy leaves Jobs under the workers' account to the operator. One
 * without an owner is left by `kubectl delete --cascade=orphan`.
 */
export function isWorkerJob(
  { controller, serviceAccount }: WorkerJob,
  settings: Pick<JobSettings, "serviceAccount">,
): boolean {
  const { kind = compressionJobs.kind } = controller ?? {};
  return kind === compressionJobs.kind && serviceAccount === settings.serviceAccount;
}

/** Milliseconds since 1970. */
export function parseOptionalTime(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text);
}
