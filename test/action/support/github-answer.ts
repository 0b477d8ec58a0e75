import type { FieldError } from "./github-rules.ts";

/** Who asks: the app that a token was made for, or the person. */
export interface Caller {
  readonly id: number;
  readonly slug: string;
  readonly isPerson?: boolean;
}

export function callerLogin({ slug, isPerson }: Caller): string {
  return isPerson === true ? slug : `${slug}[bot]`;
}

/** The app that the tokens of workflows belong to. */
export const actionsApp: Caller = { id: 15_368, slug: "github-actions" };

/** A member of the repository, who has made an access token of her own. */
export const person: Caller = { id: 583_231, slug: "octocat", isPerson: true };

export interface Call {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly caller: Caller;
}

export interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Entries in all, where the body is a page of them. */
  readonly total?: number;
}

export type Operations = Readonly<Record<string, (call: Call) => Answer>>;

export const notFound: Answer = { status: 404, body: { message: "Not Found" } };

export function refusal(errors: readonly FieldError[]): Answer {
  return {
    status: 422,
    body: { message: "Validation Failed", errors, documentation_url: "https://docs.github.com" },
  };
}

export function forbidden(message: string): Answer {
  return { status: 403, body: { message } };
}

/** The page that the query asks for. */
export function paged<T>(all: readonly T[], { per_page: size = "30", page = "1" }: Call["query"]) {
  const length = Math.min(Number(size), 100);
  const start = (Number(page) - 1) * length;
  return { status: 200, body: all.slice(start, start + length), total: all.length };
}

/** GitHub's times have no fractions of a second. */
export function formatTime(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, "Z");
}
