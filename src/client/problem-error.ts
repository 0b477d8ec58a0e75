import { errorTable, type Problem, problem } from "../contract/errors.ts";
import { truncate } from "../contract/text/truncate.ts";
import { jsonValue } from "../contract/text/json-value.ts";
import type { AnswerHeaders } from "./transport.ts";

/** Longest text of an answer in an error message, characters. */
const maxTextLength = 500;

/** The service answered a call with a problem document. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  readonly problem: Problem;
  /** Seconds that the service asks to wait before the same call. */
  readonly retryAfter: number | undefined;

  constructor(call: string, details: Problem, retryAfter: number | undefined) {
    const fields = (details.errors ?? [])
      .map(({ pointer, message }) => `\n  ${pointer}: ${message}`)
      .join("");
    super(`${call}: ${details.detail} (${details.code})${fields}`);
    this.problem = details;
    this.retryAfter = retryAfter;
  }

  get retryable(): boolean {
    return errorTable[this.problem.code].retryable;
  }
}

/** An answer that the service does not give: of a proxy, or of another server. */
export class UnexpectedAnswerError extends Error {
  override readonly name = "UnexpectedAnswerError";
  readonly status: number;
  readonly headers: AnswerHeaders;
  readonly retryAfter: number | undefined;

  constructor(
    call: string,
    { status, headers, text }: FailedAnswer,
    { retryAfter, cause }: { retryAfter?: number | undefined; cause?: unknown } = {},
  ) {
    const found = `unexpected answer with status ${status}`;
    super(`${call}: ${[found, truncate(text, maxTextLength)].filter(Boolean).join(": ")}`, {
      cause,
    });
    this.status = status;
    this.headers = headers;
    this.retryAfter = retryAfter;
  }
}

export interface FailedAnswer {
  readonly status: number;
  readonly headers: AnswerHeaders;
  readonly text: string;
}

const jsonProblem = jsonValue.pipe(problem);

export function toAnswerError(call: string, answer: FailedAnswer): Error {
  const retryAfter = String(answer.headers["retry-after"]);
  const seconds = /^\d{1,6}$/.test(retryAfter) ? Number(retryAfter) : undefined;
  const parsed = jsonProblem.safeParse(answer.text);
  return parsed.success
    ? new ProblemError(call, parsed.data, seconds)
    : new UnexpectedAnswerError(call, answer, { retryAfter: seconds });
}
