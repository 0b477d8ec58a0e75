import { KubernetesError } from "./kubernetes-error.ts";

/** A time limit of a call, to be disposed of when the call ends. */
interface Deadline extends Disposable {
  /**
   * Aborted at the deadline with a `KubernetesError`, or when the signal of the caller is aborted.
   */
  readonly signal: AbortSignal;
  /** Milliseconds of `performance.now()`. */
  readonly at: number;
}

export function createDeadline(
  action: string,
  ms: number,
  parent: AbortSignal | undefined,
): Deadline {
  const controller = new AbortController();
  const message = `Cannot ${action}: no answer within ${ms / 1000} s`;
  const timer = setTimeout(
    () => controller.abort(new KubernetesError(message, { reason: "DeadlineExceeded" })),
    ms,
  );
  const onAbort = () => controller.abort(parent?.reason);
  parent?.addEventListener("abort", onAbort);
  if (parent?.aborted) onAbort();
  return {
    signal: controller.signal,
    at: performance.now() + ms,
    [Symbol.dispose]() {
      clearTimeout(timer);
      parent?.removeEventListener("abort", onAbort);
    },
  };
}
