import type { TerminationMessage } from "../contract/worker-protocol/messages.ts";
import { workerExit } from "../contract/worker-protocol/exit-codes.ts";
import { textLimits } from "../contract/limits.ts";
import { truncate } from "../contract/text/truncate.ts";
import { joinLines } from "../contract/text/hidden-characters.ts";

/** How a worker ends: its exit code, and what its pod leaves to be read. */
export interface WorkerEnd extends Omit<TerminationMessage, "lastSeq"> {
  readonly code: number;
}

/** Settings that no worker can begin with. The message is complete without a stack. */
export class WorkerSettingsError extends Error {
  override readonly name = "WorkerSettingsError";
}

/** How a worker ends that cannot go on, and what it says of it. */
export function crashEnd(
  error: unknown,
  isStopped: boolean,
): { readonly end: WorkerEnd; readonly details?: string } {
  if (isStopped) return { end: { code: workerExit.cancelled, outcome: "Cancelled" } };
  const message = error instanceof Error ? error.message : String(error);
  const hasStack = error instanceof Error && !(error instanceof WorkerSettingsError);
  const details = hasStack ? error.stack : message;
  const failure = { code: "worker_crashed", message } as const;
  return {
    end: { code: workerExit.crashed, outcome: "Failed", error: failure },
    details: `The worker cannot continue: ${details}`,
  };
}

/**
 * File of a pod's termination message, by default where Kubernetes reads it; undefined for a process of
 * a service on this machine.
 */
export function findTerminationLog({
  MOS_JOB_TOKEN_FILE: tokenFile,
  MOS_TERMINATION_LOG: file = "/dev/termination-log",
}: NodeJS.ProcessEnv): string | undefined {
  return tokenFile === undefined ? undefined : file;
}

/** Longest termination message that Kubernetes keeps, bytes. */
const maxBytes = 4096;

/** A termination message as JSON, its error truncated to what Kubernetes keeps. */
export function serializeTerminationMessage(message: TerminationMessage): string {
  for (
    let maxLength: number = textLimits.statusMessage;
    ;
    maxLength = Math.floor(maxLength * 0.8)
  ) {
    const error = message.error && {
      ...message.error,
      message: joinLines(truncate(message.error.message, maxLength).toWellFormed()),
    };
    const text = JSON.stringify({ ...message, error });
    if (Buffer.byteLength(text) <= maxBytes) return text;
  }
}
