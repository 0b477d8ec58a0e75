import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test from "node:test";
import { parse as parseYaml } from "yaml";
import { batchRequest } from "../../src/contract/batches/batch.ts";
import { matchPolicy, trustPolicy } from "../../src/contract/people/trust-policy.ts";

const github = "https://token.actions.githubusercontent.com";
const identity = { repository_owner_id: "45", repository_id: "123" };

function parse(policy: Readonly<Record<string, unknown>>, issuers: readonly unknown[] = [{}]) {
  const known = { issuer: github, audience: "https://mos.example" };
  return trustPolicy.safeParse({
    issuers: issuers.map((issuer) => Object.assign({}, known, issuer)),
    policies: [{ name: "ci", issuer: github, claims: identity, scopes: ["jobs:read"], ...policy }],
  });
}

function matches(
  claims: Readonly<Record<string, unknown>>,
  found: Readonly<Record<string, unknown>>,
): boolean {
  const { policies } = parse({ claims: { ...identity, ...claims } }).data ?? { policies: [] };
  return "policy" in matchPolicy(policies, { ...identity, ...found });
}

const patterns: readonly [pattern: unknown, value: unknown, fits: boolean][] = [
  ["refs/heads/main", "refs/heads/main", true],
  ["refs/heads/main", "refs/heads/main2", false],
  ["refs/heads/main", "xrefs/heads/main", false],
  ["refs/heads/main", "refs/heads/main\n", false],
  ["refs/heads/main", "refs/heads/Main", false],
  ["refs/heads/v1.0", "refs/heads/v1x0", false],
  ["refs/heads/*", "refs/heads/a", true],
  ["refs/heads/*", "refs/heads/a/b", false],
  ["refs/heads/**", "refs/heads/a/b", true],
  ["refs/heads/release-*", "refs/heads/release-1.2", true],
  ["refs/heads/(a|b)+", "refs/heads/a", false],
  [["refs/heads/a", "refs/heads/b"], "refs/heads/b", true],
  [["refs/heads/a", "refs/heads/b"], "refs/heads/c", false],
  ["refs/heads/main", undefined, false],
  ["refs/heads/main", ["refs/heads/main"], false],
  ["**", undefined, false],
  [7, "7", true],
];

for (const [pattern, value, fits] of patterns) {
  const [claim, allowed] = [value, pattern].map((each) => JSON.stringify(each));
  test(`matchPolicy() ${fits ? "takes" : "refuses"} ${claim} for ${allowed}`, () => {
    assert.equal(matches({ ref: pattern }, { ref: value }), fits);
  });
}

test("matchPolicy() takes every repository of an owner where a policy says so", () => {
  assert.equal(matches({ repository_id: "*" }, { repository_id: "7" }), true);
  assert.equal(
    matches({ repository_id: "*" }, { repository_id: "7", repository_owner_id: "46" }),
    false,
  );
});

test("matchPolicy() never takes a fork's workflow file for the file itself", () => {
  const claims = { job_workflow_ref: "acme/*/.github/workflows/check.yml@refs/heads/main" };
  const of = (ref: string) => matches(claims, { job_workflow_ref: ref });
  assert.equal(of("acme/models/.github/workflows/check.yml@refs/heads/main"), true);
  assert.equal(
    of(
      "acme/a/.github/workflows/evil.yml@refs/heads/x/.github/workflows/check.yml@refs/heads/main",
    ),
    false,
  );
});

test("matchPolicy() gives the first of several policies, else the claim nearest to fitting", () => {
  const [first] =
    parse({ name: "any branch", claims: { ...identity, event_name: "push" } }).data?.policies ?? [];
  const [second] =
    parse({ name: "main", claims: { ...identity, ref: "refs/heads/main" } }).data?.policies ?? [];
  const [third] =
    parse({ name: "others", claims: { ...identity, repository_id: 9 } }).data?.policies ?? [];
  assert.ok(first && second && third);
  const all = [third, first, second];
  const push = { ...identity, event_name: "push", ref: "refs/heads/main" };
  assert.deepEqual(matchPolicy(all, push), { policy: first });
  assert.deepEqual(matchPolicy(all, { ...push, event_name: "schedule" }), { policy: second });
  assert.deepEqual(matchPolicy(all, { ...push, event_name: "schedule", ref: "refs/heads/x" }), {
    mismatch: "ref",
  });
  assert.deepEqual(matchPolicy(all, { ...push, repository_owner_id: "1" }), {
    mismatch: "repository_owner_id",
  });
  assert.deepEqual(matchPolicy([], push), { mismatch: "repository_owner_id" });
});

const wrong: readonly [string, Readonly<Record<string, unknown>>, string][] = [
  [
    "names no repository",
    { claims: { repository_owner_id: 45 } },
    "policies/0/claims/repository_id",
  ],
  [
    "trusts every owner",
    { claims: { ...identity, repository_owner_id: "*" } },
    "policies/0/claims/repository_owner_id",
  ],
  [
    "names the subject",
    { claims: { ...identity, sub: "repo:acme/models:*" } },
    "policies/0/claims",
  ],
  [
    "names a repository by its name",
    { claims: { ...identity, repository: "acme/models" } },
    "policies/0/claims",
  ],
  ["gives every scope", { scopes: ["admin"] }, "policies/0/scopes/0"],
  ["gives no scope", { scopes: [] }, "policies/0/scopes"],
  ["gives more than an hour", { expiresInSeconds: 3601 }, "policies/0/expiresInSeconds"],
  ["names an issuer that is not trusted", { issuer: "https://other.example" }, "policies/0/issuer"],
  [
    "lets every push write baselines",
    { scopes: ["baselines:write"], claims: { ...identity, event_name: "push" } },
    "policies/0/claims",
  ],
  [
    "lets every event write baselines",
    { scopes: ["baselines:write"], claims: { ...identity, ref: "refs/heads/main" } },
    "policies/0/claims/event_name",
  ],
  [
    "lets pull requests write baselines",
    {
      scopes: ["baselines:write"],
      claims: { ...identity, ref: "refs/heads/main", event_name: "pull_*" },
    },
    "policies/0/claims/event_name",
  ],
  ["lets checks be anything", { scopes: ["reports:write"], claims: identity }, "policies/0/report"],
  [
    "compares with the baselines of any suite",
    {
      scopes: ["reports:write"],
      report: { checkNames: "Tests", gates: { maxLatencyRegression: 0.05 } },
    },
    "policies/0/report/suites",
  ],
  [
    "says what checks are that it does not allow",
    { scopes: ["jobs:write"], report: { checkNames: "Tests" } },
    "policies/0/report",
  ],
];

for (const [what, policy, where] of wrong) {
  test(`trustPolicy refuses a policy that ${what}`, () => {
    const { error } = parse(policy);
    assert.deepEqual(
      error?.issues.map(({ path }) => path.join("/")),
      [where],
    );
  });
}

test("trustPolicy takes policies whose baselines come from a branch or an environment", () => {
  const scopes = ["baselines:write"];
  const push = { ...identity, event_name: ["push", "schedule"] };
  assert.ok(parse({ scopes, claims: { ...push, ref: "refs/heads/main" } }).success);
  assert.ok(parse({ scopes, claims: { ...push, environment: "release" } }).success);
});

test("trustPolicy refuses keys over http from another machine, and an issuer twice", () => {
  const issuePaths = (issuers: readonly unknown[]) =>
    parse({}, issuers).error?.issues.map(({ path }) => path.join("/"));
  assert.deepEqual(issuePaths([{ jwksUri: "http://keys.example/jwks" }]), ["issuers/0/jwksUri"]);
  assert.deepEqual(issuePaths([{ issuer: "http://localhost.example" }]), [
    "issuers/0/issuer",
    "policies/0/issuer",
  ]);
  assert.deepEqual(issuePaths([{}, {}]), ["issuers"]);
  assert.equal(issuePaths([{ jwksUri: "http://127.0.0.1:8000/jwks" }]), undefined);
});

/** Blocks of a language in a page of the documentation. */
async function readCodeBlocks(page: string, language: string): Promise<string[]> {
  const text = await readFile(new URL(`../../docs/${page}`, import.meta.url), "utf8");
  return [...text.matchAll(/^```(\w*)\n(.*?)^```/gms)].flatMap(([, of, block]) =>
    of === language ? (block ?? []) : [],
  );
}

test("the documented trust policy can be used", async () => {
  const [text = ""] = await readCodeBlocks("trust-policy.md", "yaml");
  const { policies } = trustPolicy.parse(parseYaml(text));
  const ids = { repository_owner_id: "45", repository_id: "123" };
  const ofMain = matchPolicy(policies, { ...ids, ref: "refs/heads/main", event_name: "push" });
  const ofPullRequest = matchPolicy(policies, {
    ...ids,
    ref: "refs/pull/1/merge",
    event_name: "pull_request",
  });
  assert.deepEqual([ofMain, ofPullRequest], [{ policy: policies[0] }, { policy: policies[1] }]);
});

test("the documented batches can be submitted", async () => {
  const blocks = await readCodeBlocks("baselines.md", "json");
  assert.equal(blocks.length, 2);
  for (const block of blocks) batchRequest.parse(JSON.parse(block));
});
