import type { RestEndpointMethodTypes } from "@octokit/rest";
import type { Caller } from "./github-answer.ts";

export type CheckRun = RestEndpointMethodTypes["checks"]["get"]["response"]["data"];
export type Comment = RestEndpointMethodTypes["issues"]["getComment"]["response"]["data"];
type Comparison =
  RestEndpointMethodTypes["repos"]["compareCommitsWithBasehead"]["response"]["data"];
type GitCommit = RestEndpointMethodTypes["git"]["getCommit"]["response"]["data"];
type User = NonNullable<Comment["user"]>;
type GitHubApp = NonNullable<CheckRun["app"]>;

/** Where GitHub's interface and its pages are. */
export interface Addresses {
  readonly api: string;
  readonly server: string;
}

export function appResource({ api, server }: Addresses, { id, slug }: Caller): GitHubApp {
  return {
    id,
    slug,
    node_id: `A_${id}`,
    owner: userResource({ api, server }, "github"),
    name: slug,
    description: null,
    external_url: server,
    html_url: `${server}/apps/${slug}`,
    created_at: "2018-07-30T09:30:17Z",
    updated_at: "2018-07-30T09:30:17Z",
    permissions: {},
    events: [],
  };
}

export function userResource({ api, server }: Addresses, login: string): User {
  const url = `${api}/users/${encodeURIComponent(login)}`;
  return {
    login,
    id: 1,
    node_id: "U_1",
    avatar_url: `${server}/avatar`,
    gravatar_id: "",
    url,
    html_url: `${server}/${encodeURIComponent(login)}`,
    followers_url: `${url}/followers`,
    following_url: `${url}/following{/other_user}`,
    gists_url: `${url}/gists{/gist_id}`,
    starred_url: `${url}/starred{/owner}{/repo}`,
    subscriptions_url: `${url}/subscriptions`,
    organizations_url: `${url}/orgs`,
    repos_url: `${url}/repos`,
    events_url: `${url}/events{/privacy}`,
    received_events_url: `${url}/received_events`,
    type: login.endsWith("[bot]") ? "Bot" : "User",
    site_admin: false,
  };
}

/** What a comparison of two commits says, of which only their last common commit is known here. */
export function comparisonResource({ api, server }: Addresses, mergeBase: string): Comparison {
  const url = `${api}/repos/acme/models/commits/${mergeBase}`;
  const commit = {
    url,
    sha: mergeBase,
    node_id: `C_${mergeBase}`,
    html_url: `${server}/acme/models/commit/${mergeBase}`,
    comments_url: `${url}/comments`,
    commit: {
      url,
      author: null,
      committer: null,
      message: "",
      comment_count: 0,
      tree: { sha: mergeBase, url },
    },
    author: null,
    committer: null,
    parents: [],
  };
  return {
    url,
    html_url: server,
    permalink_url: server,
    diff_url: server,
    patch_url: server,
    base_commit: commit,
    merge_base_commit: commit,
    status: "diverged",
    ahead_by: 1,
    behind_by: 0,
    total_commits: 0,
    commits: [],
  };
}

export function commitResource(
  { api, server }: Addresses,
  sha: string,
  parents: readonly string[],
): GitCommit {
  const url = `${api}/repos/acme/models/git/commits/${sha}`;
  const person = { date: "2026-01-01T00:00:00Z", email: "octocat@github.com", name: "octocat" };
  return {
    sha,
    node_id: `C_${sha}`,
    url,
    html_url: `${server}/acme/models/commit/${sha}`,
    author: person,
    committer: person,
    message: "Merge",
    tree: { sha, url },
    parents: parents.map((parent) => ({ sha: parent, url, html_url: server })),
    verification: {
      verified: false,
      reason: "unsigned",
      signature: null,
      payload: null,
      verified_at: null,
    },
  };
}
