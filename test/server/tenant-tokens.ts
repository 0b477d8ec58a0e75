import type { Workflow } from "../../src/contract/people/principal.ts";
import { defaultProject } from "../../src/contract/project.ts";
import type { Scope } from "../../src/contract/people/token.ts";
import { generateToken } from "../../src/auth/access-token.ts";
import type { TestApp } from "./test-app.ts";

export const workflowScopes: readonly Scope[] = [
  "jobs:read",
  "jobs:write",
  "models:write",
  "baselines:write",
  "reports:write",
];

export const proposal: Workflow = {
  repositoryId: "123",
  repository: "acme/models",
  commit: "a".repeat(40),
  event: "pull_request",
  ref: "refs/pull/7/merge",
  baseRef: "main",
  report: null,
};
export const pushed: Workflow = { ...proposal, event: "push", ref: "refs/heads/main" };

interface TokenOptions {
  readonly project?: string;
  readonly scopes?: readonly Scope[];
  readonly workflow?: Workflow;
  readonly expiresAt?: string;
}

/** A token as the service gives it to people, or to a workflow for its identity. */
export async function tenantToken(
  { records }: TestApp,
  { project = defaultProject, scopes = workflowScopes, workflow, expiresAt }: TokenOptions,
) {
  await records.projects.ensure(project);
  const newToken = generateToken({
    name: "tenant",
    scopes,
    expiresAt: expiresAt ?? null,
    policy: workflow === undefined ? null : "policy",
    workflow,
  });
  return records.tokens.create(project, newToken);
}
