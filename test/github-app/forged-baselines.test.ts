import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { exchangedToken } from "../../src/contract/people/token.ts";
import { trustPolicy } from "../../src/contract/people/trust-policy.ts";
import { audience, startLocalIssuer } from "../auth/local-issuer.ts";
import { makeTestApp, problemIn } from "../server/test-app.ts";
import { reportedBatch, sha as head, startGitHubWithApp } from "./reported-batch.ts";

const mergeCommit = "c".repeat(40);
const proposal = {
  event_name: "pull_request",
  ref: "refs/pull/7/merge",
  base_ref: "main",
  sha: mergeCommit,
};

/** A service whose checks of pull requests compare with the baselines of one suite. */
async function submitProposal(
  t: TestContext,
  fields: Readonly<Record<string, unknown>>,
  claims: Readonly<Record<string, unknown>> = proposal,
) {
  const { gitHub, credentials } = await startGitHubWithApp(t);
  const issuer = await startLocalIssuer(t, `${gitHub.url}/_services/token`);
  const trust = trustPolicy.parse({
    issuers: [{ issuer: issuer.url, audience, jwksUri: issuer.jwksUri }],
    policies: [
      {
        name: "pull requests",
        issuer: issuer.url,
        claims: { repository_owner_id: 45, repository_id: "*" },
        scopes: ["jobs:write", "reports:write"],
        report: {
          checkNames: "Model compression",
          gates: { maxSizeRegression: 0.05 },
          suites: "nightly",
        },
      },
    ],
  });
  gitHub.parents.set(mergeCommit, ["b".repeat(40), head]);
  const service = await makeTestApp(t, { trust, github: credentials });
  const body = { token: await issuer.sign({ claims }) };
  const exchanged = await service.ask("POST /v1/tokens/exchange", { token: null, body });
  const { token } = exchangedToken.parse(await exchanged.json());
  return service.ask("POST /v1/batches", { token, body: reportedBatch(["one"], fields) });
}

const base = { branch: "main", sha: "b".repeat(40) };
const revision = { sha: head, base };
const fair = { suite: "nightly", revision };

/** What a pull request compares with in place of its base, and where that is refused. */
const forgeries: Readonly<Record<string, readonly [object, string]>> = {
  "another suite": [{ ...fair, suite: "mine" }, "/suite"],
  "no suite": [{ revision }, "/suite"],
  "another branch": [
    { ...fair, revision: { sha: head, base: { branch: "slow" } } },
    "/revision/base/branch",
  ],
  "no base": [{ ...fair, revision: { sha: head } }, "/revision/base/branch"],
  "no revision": [{ suite: "nightly" }, "/revision/base/branch"],
};

for (const [what, [fields, pointer]] of Object.entries(forgeries)) {
  test(`no check of a pull request compares with ${what}`, async (t) => {
    const problem = await problemIn(await submitProposal(t, { ...fields }));
    assert.equal(problem.status, 422);
    assert.deepEqual(
      problem.errors?.map((error) => error.pointer),
      [pointer],
    );
  });
}

test("a check of a pull request compares with the branch that it changes", async (t) => {
  assert.equal((await submitProposal(t, fair)).status, 202);
});

test("a check of a push compares with the branch that it names", async (t) => {
  const claims = { sha: head };
  const other = { ...fair, revision: { sha: head, base: { branch: "release" } } };
  assert.equal((await submitProposal(t, other, claims)).status, 202);
});
