/**
 * The HTTP status of an error of Octokit, which is 500 without an answer of GitHub; undefined for
 * any other error.
 */
export function httpErrorStatus(error: unknown): number | undefined {
  return error instanceof Error && "status" in error && typeof error.status === "number"
    ? error.status
    : undefined;
}
