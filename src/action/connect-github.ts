import * as core from "@actions/core";
import { retry } from "@octokit/plugin-retry";
import { throttling } from "@octokit/plugin-throttling";
import { Octokit } from "@octokit/rest";
import { type Dispatcher, fetch, type RequestInfo, type RequestInit } from "undici";

/** A step does not wait longer for GitHub to take requests again. */
const longestWaitSeconds = 120;
const maxWaits = 3;

export type GitHub = ReturnType<typeof connectGitHub>;

interface Connection {
  readonly token: string;
  readonly apiUrl: string;
  readonly dispatcher: Dispatcher;
}

/** GitHub's REST interface. Requests are repeated after passing failures, and writes come at the pace that GitHub asks for. */
export function connectGitHub({ token, apiUrl, dispatcher }: Connection) {
  const createRateLimitHandler =
    (what: string) => (seconds: number, _: unknown, __: unknown, waits: number) => {
      const isShort = seconds <= longestWaitSeconds && waits < maxWaits;
      core.info(
        `GitHub's ${what} is reached; ${isShort ? `going on in ${seconds} s` : "giving up"}`,
      );
      return isShort;
    };
  const Client = Octokit.plugin(retry, throttling);
  return new Client({
    auth: token,
    baseUrl: apiUrl,
    userAgent: "model-optimization-action",
    log: { debug: () => {}, info: core.debug, warn: core.debug, error: core.debug },
    request: {
      // Of its own accord it knows of no proxy.
      fetch: async (url: RequestInfo, init: RequestInit) => fetch(url, { ...init, dispatcher }),
    },
    throttle: {
      onRateLimit: createRateLimitHandler("rate limit"),
      onSecondaryRateLimit: createRateLimitHandler("secondary rate limit"),
    },
  });
}

/** The HTTP status that GitHub refused a request with; 500 where it did not answer. */
export function httpErrorStatus(error: unknown): number | undefined {
  return error instanceof Error && "status" in error && typeof error.status === "number"
    ? error.status
    : undefined;
}
