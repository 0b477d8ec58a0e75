import type { GitHub } from "./connect-github.ts";

interface CommentPlace {
  /** `owner/name`. */
  readonly repository: string;
  readonly pullRequest: number;
  /** Text that nobody sees, at the beginning of the comment, to find it again. */
  readonly marker: string;
}

/** Writes the comment on a pull request anew, or makes it. */
export async function writeStickyComment(
  github: GitHub,
  { repository, pullRequest, marker }: CommentPlace,
  body: string,
): Promise<void> {
  const [owner = "", repo = ""] = repository.split("/");
  const place = { owner, repo, issue_number: pullRequest };
  for await (const { data } of github.paginate.iterator(github.rest.issues.listComments, {
    ...place,
    per_page: 100,
  })) {
    // People could write the marker as well.
    const own = data.find(
      (comment) => comment.user?.type === "Bot" && comment.body?.startsWith(marker),
    );
    if (own) {
      await github.rest.issues.updateComment({ owner, repo, comment_id: own.id, body });
      return;
    }
  }
  await github.rest.issues.createComment({ ...place, body });
}
