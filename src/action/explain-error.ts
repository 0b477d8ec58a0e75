import { UnreachableError } from "./retry-while-unreachable.ts";
import type { Step } from "./step.ts";
import { ProblemError, UnexpectedAnswerError } from "../client/problem-error.ts";
import { isConnectionError } from "../client/retry.ts";
import type { ErrorCode } from "../contract/errors.ts";
import type { Place } from "../contract/batches/github-report.ts";
import { errorMessage } from "../log/error-message.ts";
import type { Annotation } from "../report/build-annotations.ts";
import type { Report } from "../report/report.ts";

const advice: Partial<Record<ErrorCode, string>> = {
  unauthorized:
    'The service does not know the token, or it has expired: is the input "token" right?',
  missing_scope:
    "Make a token with the scopes that the action needs: jobs:read, jobs:write and models:write.",
  identity_token_refused:
    "Ask the service's administrator for a trust policy that fits this workflow.",
};

/** What went wrong, and what the workflow's author can do about it. */
function explainError(error: unknown, serviceUrl: string): string {
  const message = errorMessage(error);
  if (isConnectionError(error)) {
    const question =
      'Is the input "service-url" right, does the service run, and can this runner reach it?';
    return `The service at ${serviceUrl} cannot be reached: ${message}. ${question}`;
  }
  if (error instanceof UnexpectedAnswerError && (error.status < 400 || error.status === 404)) {
    const { location } = error.headers;
    const nothing = `There is no model optimization service at ${serviceUrl}`;
    const finding = location === undefined ? nothing : `${serviceUrl} leads to ${String(location)}`;
    return `${message}\n${finding}: is the input "service-url" right?`;
  }
  const code = error instanceof ProblemError ? error.problem.code : inferErrorCode(error);
  const help = code && advice[code];
  return help === undefined ? message : `${message}\n${help}`;
}

/** The code of an answer without a body, as those to HEAD are. */
function inferErrorCode(error: unknown): ErrorCode | undefined {
  if (!(error instanceof UnexpectedAnswerError)) return undefined;
  if (error.status === 401) return "unauthorized";
  return error.status === 403 ? "missing_scope" : undefined;
}

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

/** What the workflow's author has to correct. */
export class InputError extends Error {
  override readonly name = "InputError";
  readonly problems: readonly InputProblem[];

  constructor(problems: readonly InputProblem[], options?: ErrorOptions) {
    super(problems.map(({ message }) => message).join("\n"), options);
    this.problems = problems;
  }
}

export interface InputProblem {
  /** States what was found and what is allowed. */
  readonly message: string;
  /** The line of the workspace to annotate. */
  readonly place?: Place | undefined;
}
