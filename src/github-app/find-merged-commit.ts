import { ServiceError } from "../contract/errors.ts";
import { httpErrorStatus } from "../github/http-error-status.ts";
import { parseRepository } from "../github/parse-repository.ts";
import type { Installations } from "./installations.ts";

/**
 * The commit that GitHub merged into the base of a pull request to make the given one; undefined
 * where that is no such merge, or in a repository without the app.
 * @throws ServiceError unavailable
 */
export async function findMergedCommit(
  installations: Installations,
  repository: string,
  mergeCommit: string,
): Promise<string | undefined> {
  try {
    const client = await installations.getClient(repository);
    const { data } = await client.rest.git.getCommit({
      ...parseRepository(repository),
      commit_sha: mergeCommit,
      request: { retries: 0 },
    });
    const [, merged, ...others] = data.parents;
    return others.length === 0 ? merged?.sha : undefined;
  } catch (cause) {
    if ([403, 404, 409, 422].includes(httpErrorStatus(cause) ?? 0)) return undefined;
    const headers = { "retry-after": "5" };
    const message = "GitHub does not say which commit the pull request has";
    throw new ServiceError("unavailable", message, { cause, headers });
  }
}
