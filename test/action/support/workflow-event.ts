/** What started a workflow, as a step finds it in its environment and in the file of the event. */
export interface WorkflowEvent {
  readonly environment: Readonly<Record<string, string>>;
  readonly payload: unknown;
}

/** Commits of the repository that events name. */
export const commits = {
  base: "5a1b7e0c3d2f4a6b8c9d0e1f2a3b4c5d6e7f8a9b",
  head: "c0ffee254729296a45a3885639ac7e10f9d54979",
  /** What GitHub makes to test a pull request; nobody looks at its check runs. */
  merge: "0123456789abcdef0123456789abcdef01234567",
} as const;

const repository = {
  id: 1_296_269,
  name: "models",
  full_name: "acme/models",
  default_branch: "main",
  owner: { login: "acme", id: 9_919 },
  html_url: "https://github.com/acme/models",
};
const sender = { login: "octocat", id: 1, type: "User" };
const fork = {
  ...repository,
  id: 2,
  full_name: "stranger/models",
  owner: { login: "stranger", id: 3 },
  fork: true,
};

function pullRequest(from: typeof repository, author: string) {
  return {
    number: 7,
    state: "open",
    user: { login: author, id: 1, type: author.endsWith("[bot]") ? "Bot" : "User" },
    head: { ref: "smaller-model", sha: commits.head, repo: from },
    base: { ref: "main", sha: commits.base, repo: repository },
    html_url: `${repository.html_url}/pull/7`,
  };
}

function onPullRequest(from: typeof repository, author = "octocat"): WorkflowEvent {
  return {
    environment: {
      GITHUB_EVENT_NAME: "pull_request",
      GITHUB_SHA: commits.merge,
      GITHUB_REF: "refs/pull/7/merge",
      GITHUB_HEAD_REF: "smaller-model",
      GITHUB_BASE_REF: "main",
      GITHUB_ACTOR: author,
    },
    payload: {
      action: "synchronize",
      number: 7,
      pull_request: pullRequest(from, author),
      repository,
      sender: { ...sender, login: author },
    },
  };
}

function onBranch(name: string, payload: object): WorkflowEvent {
  return {
    environment: {
      GITHUB_EVENT_NAME: name,
      GITHUB_SHA: commits.head,
      GITHUB_REF: "refs/heads/main",
      GITHUB_ACTOR: "octocat",
    },
    payload: { repository, sender, ...payload },
  };
}

const ofMain = onPullRequest(repository);

/** An event of every kind that the action knows. */
export const workflowEvents = {
  push: onBranch("push", {
    ref: "refs/heads/main",
    before: commits.base,
    after: commits.head,
    commits: [],
  }),
  pullRequest: ofMain,
  pullRequestOfFork: onPullRequest(fork),
  pullRequestOfDependabot: onPullRequest(repository, "dependabot[bot]"),
  pullRequestTarget: {
    environment: {
      ...ofMain.environment,
      GITHUB_EVENT_NAME: "pull_request_target",
      GITHUB_SHA: commits.base,
      GITHUB_REF: "refs/heads/main",
    },
    payload: ofMain.payload,
  },
  mergeGroup: {
    environment: {
      GITHUB_EVENT_NAME: "merge_group",
      GITHUB_SHA: commits.head,
      GITHUB_REF: "refs/heads/gh-readonly-queue/main/pr-7",
      GITHUB_ACTOR: "octocat",
    },
    payload: {
      action: "checks_requested",
      merge_group: {
        head_sha: commits.head,
        head_ref: "refs/heads/gh-readonly-queue/main/pr-7",
        base_sha: commits.base,
        base_ref: "refs/heads/main",
      },
      repository,
      sender,
    },
  },
  /** A workflow that follows the one of a pull request; it runs on the default branch. */
  workflowRun: {
    ...onBranch("workflow_run", {
      action: "completed",
      workflow_run: {
        id: 30_433_642,
        event: "pull_request",
        conclusion: "success",
        head_sha: commits.head,
        head_branch: "smaller-model",
        head_repository: repository,
        pull_requests: [
          {
            number: 7,
            head: { ref: "smaller-model", sha: commits.head, repo: { id: repository.id } },
            base: { ref: "main", sha: commits.base, repo: { id: repository.id } },
          },
        ],
      },
    }),
    environment: {
      GITHUB_EVENT_NAME: "workflow_run",
      GITHUB_SHA: commits.base,
      GITHUB_REF: "refs/heads/main",
      GITHUB_ACTOR: "octocat",
    },
  },
  issueComment: onBranch("issue_comment", {
    action: "created",
    issue: { number: 7, pull_request: { html_url: `${repository.html_url}/pull/7` } },
    comment: { body: "/compress" },
  }),
  schedule: onBranch("schedule", { schedule: "30 2 * * *" }),
  workflowDispatch: onBranch("workflow_dispatch", { ref: "refs/heads/main", inputs: {} }),
} as const satisfies Record<string, WorkflowEvent>;
