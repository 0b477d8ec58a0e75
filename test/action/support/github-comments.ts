import {
  type Call,
  callerLogin,
  forbidden,
  notFound,
  type Operations,
  paged,
  refusal,
  formatTime,
} from "./github-answer.ts";
import { type Addresses, appResource, type Comment, userResource } from "./github-resources.ts";
import { commentErrors, commentFields } from "./github-rules.ts";

/** The comments on a repository's pull requests, with the operations on them. */
export function createComments(addresses: Addresses) {
  const all: { comment: Comment; readonly issue: number }[] = [];
  const list = (issueNumber: number) =>
    all.filter(({ issue }) => issue === issueNumber).map(({ comment }) => comment);

  const operations: Operations = {
    "issues/create-comment"(call) {
      const { body } = commentFields.parse(call.body);
      const errors = commentErrors(body);
      if (errors.length > 0) return refusal(errors);
      const comment = newComment(addresses, all.length + 1, { ...call, body });
      all.push({ comment, issue: Number(call.params["issue_number"]) });
      return { status: 201, body: comment };
    },
    "issues/update-comment"({ params, body: sent, caller }) {
      const stored = all.find(({ comment }) => String(comment.id) === params["comment_id"]);
      if (stored === undefined) return notFound;
      if (caller.isPerson !== true && stored.comment.user?.login !== callerLogin(caller))
        return forbidden("Resource not accessible by integration");
      const { body } = commentFields.parse(sent);
      const errors = commentErrors(body);
      if (errors.length > 0) return refusal(errors);
      stored.comment = { ...stored.comment, body, updated_at: formatTime(new Date()) };
      return { status: 200, body: stored.comment };
    },
    "issues/list-comments": ({ params, query }) =>
      paged(list(Number(params["issue_number"])), query),
  };
  return { operations, list };
}

type NewComment = Pick<Call, "params" | "caller"> & { readonly body: string };

function newComment(
  addresses: Addresses,
  id: number,
  { params, caller, body }: NewComment,
): Comment {
  const repository = `${params["owner"]}/${params["repo"]}`;
  const issues = `${addresses.api}/repos/${repository}/issues`;
  const at = formatTime(new Date());
  return {
    id,
    node_id: `IC_${id}`,
    url: `${issues}/comments/${id}`,
    html_url: `${addresses.server}/${repository}/pull/${params["issue_number"]}#issuecomment-${id}`,
    issue_url: `${issues}/${params["issue_number"]}`,
    body,
    user: userResource(addresses, callerLogin(caller)),
    created_at: at,
    updated_at: at,
    author_association: "NONE",
    performed_via_github_app: caller.isPerson === true ? null : appResource(addresses, caller),
  };
}
