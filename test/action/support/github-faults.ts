/** An answer of GitHub that a test orders, in the words and headers of the real ones; `reset` cuts the connection. */
export type GitHubFault =
  | "reset"
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly message: string;
    };

/** What goes wrong with GitHub's interface. */
export const gitHubFaults = {
  /** Too many writes in a short time. */
  secondaryLimit: (retryAfterSeconds: number) => ({
    status: 403,
    headers: { "retry-after": String(retryAfterSeconds) },
    message:
      "You have exceeded a secondary rate limit and have been temporarily blocked from content creation. Please retry your request again later.",
  }),
  /** The hour's requests are used up. */
  primaryLimit: (resetInSeconds: number) => ({
    status: 403,
    headers: {
      "x-ratelimit-remaining": "0",
      "x-ratelimit-reset": String(Math.ceil(Date.now() / 1000) + resetInSeconds),
    },
    message: "API rate limit exceeded for installation ID 1.",
  }),
  /** What a token of a fork's pull request gets for every write. */
  forbidden: { status: 403, message: "Resource not accessible by integration" },
  unauthorized: { status: 401, message: "Bad credentials" },
  notFound: { status: 404, message: "Not Found" },
  invalid: { status: 422, message: "Validation Failed" },
  serverError: { status: 500, message: "Server Error" },
  badGateway: { status: 502, message: "Server Error" },
  reset: "reset",
} as const satisfies Record<string, GitHubFault | ((seconds: number) => GitHubFault)>;
