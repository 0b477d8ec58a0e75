import { isConnectionError } from "../client/retry.ts";
import type { Annotation } from "../report/build-annotations.ts";
import type { Report } from "../report/report.ts";
import { explainError } from "./explain-error.ts";
import { InputError } from "./input-error.ts";
import { UnreachableError } from "./retry-while-unreachable.ts";
import type { Step } from "./step.ts";

type AbortReason = NonNullable<Report["abortReason"]>;

interface Abort {
  readonly abortReason: AbortReason;
  readonly failureMessage: string | undefined;
  /** The lines of the workspace that the author has to correct. */
  readonly annotations: readonly Annotation[];
}

/** What ended the step before its jobs. */
export function describeAbort(error: unknown, step: Step, limit: AbortSignal): Abort {
  const abortReason = classifyAbort(error, step.signal, limit);
  const isExpected = abortReason === "cancelled" || abortReason === "timed_out";
  const failureMessage = isExpected ? undefined : explainError(error, step.inputs["service-url"]);
  const problems = error instanceof InputError ? error.problems : [];
  const annotations = problems.flatMap(({ place, message }): Annotation[] =>
    place ? [{ place, message, level: "failure", title: step.identity.checkName }] : [],
  );
  return { abortReason, failureMessage, annotations };
}

function classifyAbort(error: unknown, stop: AbortSignal, limit: AbortSignal): AbortReason {
  if (stop.aborted) return "cancelled";
  if (limit.aborted) return "timed_out";
  const isUnreachable = error instanceof UnreachableError || isConnectionError(error);
  return isUnreachable ? "unreachable" : "error";
}
