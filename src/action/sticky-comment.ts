import type { RepositoryName } from "../github/parse-repository.ts";
import type { GitHub } from "./connect-github.ts";

interface CommentPlace {
  readonly repo: RepositoryName;
  readonly pullRequest: number;
  /** Invisible text at the start of the comment, by which later runs find it. */
  readonly marker: string;
}

/** Updates the comment on a pull request that has the marker, or creates it. */
export async function writeStickyComment(
  github: GitHub,
  { repo, pullRequest, marker }: CommentPlace,
  body: string,
): Promise<void> {
  const place = { ...repo, issue_number: pullRequest };
  const pages = github.paginate.iterator(github.rest.issues.listComments, {
    ...place,
    per_page: 100,
  });
  for await (const { data } of pages) {
    // A person's comment could start with the marker, too.
    const own = data.find(
      (comment) => comment.user?.type === "Bot" && comment.body?.startsWith(marker),
    );
    if (own) {
      await github.rest.issues.updateComment({ ...repo, comment_id: own.id, body });
      return;
    }
  }
  await github.rest.issues.createComment({ ...place, body });
}
