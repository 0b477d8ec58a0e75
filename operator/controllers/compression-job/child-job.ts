import { resourceLabels, sharesAnnotation } from "../../../src/contract/custom-resources.ts";
import { type JobStep, jobStep } from "../../../src/kubernetes/job-identity.ts";
import { jobEndConditions, type ObservedJob } from "../../../src/kubernetes/observed-resources.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";

/** How a Job ended, in the Job controller's words. */
interface JobEnd {
  readonly complete: boolean;
  readonly reason: string;
  readonly message: string;
  readonly at: number;
}

/** What decisions need of a `batch/v1` Job. Times are milliseconds since 1970. */
export interface ChildJob {
  readonly name: string;
  readonly uid: string;
  readonly controller: { readonly kind: string; readonly name: string; readonly uid: string } | undefined;
  /** Label: the job that it works for. */
  readonly jobId: string | undefined;
  readonly step: JobStep | undefined;
  readonly shares: number;
  readonly deleting: boolean;
  readonly suspended: boolean;
  readonly createdAt: number;
  readonly startedAt: number | undefined;
  readonly ttlSeconds: number | undefined;
  readonly end: JobEnd | undefined;
}

export function readJob({ metadata, spec, status }: Stored<ObservedJob>): ChildJob {
  const controller = metadata.ownerReferences?.find((owner) => owner.controller);
  return {
    name: metadata.name,
    uid: metadata.uid,
    controller: controller && { kind: controller.kind, name: controller.name, uid: controller.uid },
    jobId: metadata.labels?.[resourceLabels.jobId],
    step: jobStep.options.find((step) => step === (metadata.labels?.[resourceLabels.step] ?? "work")),
    shares: Number(metadata.annotations?.[sharesAnnotation] ?? spec?.completions ?? 1),
    deleting: metadata.deletionTimestamp !== undefined,
    suspended: spec?.suspend === true,
    createdAt: Date.parse(metadata.creationTimestamp),
    startedAt: status?.startTime === undefined ? undefined : Date.parse(status.startTime),
    ttlSeconds: spec?.ttlSecondsAfterFinished,
    end: endOf(status?.conditions, metadata.deletionTimestamp),
  };
}

/** A failure that comes of the Job's deletion is none. */
function endOf(
  conditions: NonNullable<ObservedJob["status"]>["conditions"],
  deletedAt: string | undefined,
): JobEnd | undefined {
  const condition = conditions?.find(({ type, status }) => status === "True" && jobEndConditions.includes(type));
  if (condition === undefined) return undefined;
  const complete = condition.type === "Complete";
  const at = Date.parse(condition.lastTransitionTime ?? "");
  if (!complete && deletedAt !== undefined && at >= Date.parse(deletedAt)) return undefined;
  return { complete, reason: condition.reason ?? "", message: condition.message ?? "", at };
}
