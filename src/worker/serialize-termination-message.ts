import { terminationMessage, type TerminationMessage } from "../contract/worker.ts";

/** What Kubernetes keeps of a termination message, bytes. */
const maxBytes = 4096;
const maxErrorLength = 1024;

/** A termination message as JSON, its error cut to what Kubernetes keeps. */
export function serializeTerminationMessage({ error, ...message }: TerminationMessage): string {
  for (let length = maxErrorLength; ; length = Math.floor(length * 0.8)) {
    const cut = error && { ...error, message: error.message.slice(0, length).toWellFormed() };
    const text = JSON.stringify(
      terminationMessage.parse({ ...message, ...(cut && { error: cut }) }),
    );
    if (Buffer.byteLength(text) <= maxBytes) return text;
  }
}
