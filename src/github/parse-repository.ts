/** A repository, as parameters of GitHub's REST API name it. */
export interface RepositoryName {
  readonly owner: string;
  readonly repo: string;
}

/** Splits `owner/name`. */
export function parseRepository(fullName: string): RepositoryName {
  const [owner = "", repo = ""] = fullName.split("/");
  return { owner, repo };
}
