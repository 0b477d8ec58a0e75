import { retry } from "@octokit/plugin-retry";
import { throttling } from "@octokit/plugin-throttling";
import { Octokit } from "@octokit/rest";

/** A limit that lasts longer is left to a later look. */
const maxRateLimitWaitSeconds = 60;
const ignore = () => {};

interface GitHubConnection {
  readonly apiUrl: string;
  readonly auth: string;
  /** Requests under one name come at the pace that GitHub asks for: a write each second. */
  readonly throttleId: string;
}

export type GitHubClient = ReturnType<typeof createGitHubClient>;

/** GitHub's REST interface. */
export function createGitHubClient({ apiUrl, auth, throttleId }: GitHubConnection) {
  const mayWait = (seconds: number, _: unknown, __: unknown, waits: number) =>
    seconds <= maxRateLimitWaitSeconds && waits < 1;
  const Client = Octokit.plugin(retry, throttling);
  return new Client({
    auth,
    baseUrl: apiUrl.replace(/\/+$/, ""),
    userAgent: "model-optimization-service",
    log: { debug: ignore, info: ignore, warn: ignore, error: ignore },
    throttle: { id: throttleId, onRateLimit: mayWait, onSecondaryRateLimit: mayWait },
  });
}

/** The HTTP status that GitHub refused a request with; undefined where it is not GitHub that failed, 500 where it did not answer. */
export function httpErrorStatus(error: unknown): number | undefined {
  return error instanceof Error && "status" in error && typeof error.status === "number"
    ? error.status
    : undefined;
}
