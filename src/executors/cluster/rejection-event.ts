import { type OwnStatusReason, statusReasonTable } from "../../contract/jobs/status-reasons.ts";
import { textLimits } from "../../contract/limits.ts";
import { truncate } from "../../contract/text/truncate.ts";
import { isDenial, type KubernetesError } from "../../kubernetes/kubernetes-error.ts";
import type { ObservedEvent } from "../../records/jobs/cluster-records.ts";

/** Of jobs that the cluster does not take yet. */
export const notSubmitted = "not_submitted" satisfies OwnStatusReason;

/**
 * A resource that is invalid or that a policy denies fails the job; after other errors the job
 * waits for another attempt.
 */
export function rejectionEvent(error: KubernetesError): ObservedEvent {
  if (isDenial(error)) {
    const message = truncate(error.message, textLimits.errorMessage);
    return { type: "failure", error: { code: "resource_invalid", message } };
  }
  return { type: "waiting", ...notSubmittedCause(error.message) };
}

/** Why a job waits that the API server refuses for now, with its words. */
export function notSubmittedCause(words: string) {
  const text = `${statusReasonTable[notSubmitted].message}: ${words}`;
  return { reason: notSubmitted, message: truncate(text, textLimits.statusMessage) };
}
