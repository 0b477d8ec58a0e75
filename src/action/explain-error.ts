import { ProblemError, UnexpectedAnswerError } from "../client/problem-error.ts";
import { isConnectionError } from "../client/retry.ts";
import type { ErrorCode } from "../contract/errors.ts";
import { errorMessage } from "../log/error-message.ts";

const advice: Partial<Record<ErrorCode, string>> = {
  unauthorized:
    'The service does not know the token, or it has expired: is the input "token" right?',
  missing_scope:
    "Make a token with the scopes that the action needs: jobs:read, jobs:write and models:write.",
  identity_token_refused:
    "Ask the service's administrator for a trust policy that fits this workflow.",
};

/** What went wrong, and what the workflow's author can do about it. */
export function explainError(error: unknown, serviceUrl: string): string {
  const message = errorMessage(error);
  if (isConnectionError(error)) {
    const question =
      'Is the input "service-url" right, does the service run, and can this runner reach it?';
    return `The service at ${serviceUrl} cannot be reached: ${message}. ${question}`;
  }
  if (error instanceof UnexpectedAnswerError && error.status === 404) {
    const question = 'is the input "service-url" right?';
    return `${message}\nThere is no model optimization service at ${serviceUrl}: ${question}`;
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
