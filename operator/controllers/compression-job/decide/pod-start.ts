import type { JobError } from "../../../../src/contract/errors.ts";
import {
  isBeingPrepared,
  isFailingToStart,
  podStartTime,
  type WorkerPod,
} from "../observe/worker-pod.ts";
import type { ObservedStep, StepEnd } from "./step-end.ts";
import type { StepWait, Wait, WaitingStep } from "./waiting.ts";

/** Reasons of containers that wait for their image. */
const imageReasons: ReadonlySet<string> = new Set([
  "ErrImagePull",
  "ImagePullBackOff",
  "InvalidImageName",
  "ErrImageNeverPull",
  "ImageInspectError",
  "RegistryUnavailable",
  "SignatureValidationFailed",
]);

/** When a pod that cannot be started fails its job, milliseconds since 1970. */
export function podStartDeadline(pod: WorkerPod, podStartSeconds: number): number {
  return failingSince(pod) + podStartSeconds * 1000;
}

/** Its preparation may have taken long before: the pull of a large image is no failure. */
function failingSince(pod: WorkerPod): number {
  return pod.failingSince ?? podStartTime(pod);
}

export function checkStartFailure(step: ObservedStep): StepEnd | undefined {
  const wait = findExpiredWait(step);
  if (wait === undefined) return undefined;
  const error: JobError = { code: "pod_start_failed", message: wait.message };
  return { error, delivered: false };
}

function findExpiredWait({ pods, now, warningMessage, podStartSeconds }: ObservedStep) {
  const late = pods.filter((pod) => podStartDeadline(pod, podStartSeconds) <= now);
  const { waiting } = late.find(isFailingToStart) ?? {};
  if (waiting !== undefined) return unstartedWait(waiting);
  const hasWarning = warningMessage !== "" && late.some(isBeingPrepared);
  return hasWarning ? warningWait(warningMessage) : undefined;
}

export function checkUnstartedPod({ pods }: WaitingStep): StepWait | undefined {
  const pod = pods.find(isFailingToStart);
  if (pod?.waiting === undefined) return undefined;
  return { wait: unstartedWait(pod.waiting), since: failingSince(pod) };
}

export function checkPodWarning({ pods, warningMessage }: WaitingStep): StepWait | undefined {
  const pod = pods.find(isBeingPrepared);
  if (warningMessage === "" || pod === undefined) return undefined;
  return { wait: warningWait(warningMessage), since: podStartTime(pod) };
}

function unstartedWait({ reason, message }: NonNullable<WorkerPod["waiting"]>): Wait {
  const details = message === "" ? `(${reason})` : `(${reason}): ${message}`;
  return imageReasons.has(reason)
    ? { reason: "image_unavailable", message: `The worker's image cannot be pulled ${details}` }
    : { reason: "pod_not_starting", message: `The worker's pod cannot be started ${details}` };
}

/** For a pod that its node cannot prepare. */
function warningWait(warningMessage: string): Wait {
  const message = `The worker's pod cannot be started: ${warningMessage}`;
  return { reason: "pod_not_starting", message };
}
