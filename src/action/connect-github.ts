import * as core from "@actions/core";
import { getOctokit } from "@actions/github";
import { retry } from "@octokit/plugin-retry";
import { throttling } from "@octokit/plugin-throttling";
import { type Dispatcher, fetch, type RequestInfo, type RequestInit } from "undici";
import type { WorkflowRun } from "./workflow-run.ts";

/** Longest wait for a rate limit, seconds. */
const maxRateLimitWaitSeconds = 120;
const maxRateLimitWaits = 3;

export type GitHub = ReturnType<typeof connectGitHub>;

/** An Octokit that repeats failed requests and keeps to GitHub's rate limits. */
export function connectGitHub(
  token: string,
  { apiUrl }: Pick<WorkflowRun, "apiUrl">,
  dispatcher: Dispatcher,
) {
  const options = {
    baseUrl: apiUrl,
    userAgent: "model-optimization-action",
    log: { debug: () => {}, info: core.debug, warn: core.debug, error: core.debug },
    request: {
      // Octokit's own proxy support decides once, by the environment's API URL.
      fetch: async (url: RequestInfo, init: RequestInit) => fetch(url, { ...init, dispatcher }),
    },
    throttle: {
      onRateLimit: createRateLimitHandler("rate limit"),
      onSecondaryRateLimit: createRateLimitHandler("secondary rate limit"),
    },
  };
  return getOctokit(token, options, retry, throttling);
}

/** Decides whether a request that a rate limit refused is sent again, and logs it. */
function createRateLimitHandler(limit: string) {
  return (seconds: number, _: unknown, __: unknown, waits: number) => {
    const isRepeated = seconds <= maxRateLimitWaitSeconds && waits < maxRateLimitWaits;
    const next = isRepeated ? `continuing in ${seconds} s` : "giving up";
    core.info(`GitHub's ${limit} is reached; ${next}`);
    return isRepeated;
  };
}
