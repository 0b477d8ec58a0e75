import { textLimits } from "../contract/limits.ts";
import { truncate } from "../contract/text/bounded-text.ts";
import { terminationMessage, type TerminationMessage } from "../contract/jobs/worker.ts";

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
      message: truncate(message.error.message, maxLength).toWellFormed(),
    };
    const text = JSON.stringify(terminationMessage.parse({ ...message, error }));
    if (Buffer.byteLength(text) <= maxBytes) return text;
  }
}
