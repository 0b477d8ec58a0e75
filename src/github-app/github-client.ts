import { retry } from "@octokit/plugin-retry";
import { throttling } from "@octokit/plugin-throttling";
import { Octokit } from "@octokit/rest";

/** Longest wait for a rate limit; the report loop tries again later. */
const maxRateLimitWaitSeconds = 60;
const ignore = () => {};
const log = { debug: ignore, info: ignore, warn: ignore, error: ignore };

interface GitHubConnection {
  readonly apiUrl: string;
  readonly auth: string;
  /** Clients with the same id share the pace that GitHub asks for: one write a second. */
  readonly throttleId: string;
}

export type GitHubClient = ReturnType<typeof createGitHubClient>;

/** An Octokit that repeats failed requests and keeps to GitHub's rate limits. */
export function createGitHubClient({ apiUrl, auth, throttleId }: GitHubConnection) {
  const mayWait = (seconds: number, _: unknown, __: unknown, waits: number) =>
    seconds <= maxRateLimitWaitSeconds && waits < 1;
  const Client = Octokit.plugin(retry, throttling);
  return new Client({
    auth,
    baseUrl: apiUrl.replace(/\/+$/, ""),
    userAgent: "model-optimization-service",
    log,
    throttle: { id: throttleId, onRateLimit: mayWait, onSecondaryRateLimit: mayWait },
  });
}
