import assert from "node:assert/strict";
import test from "node:test";
import { checkClaims } from "../../src/auth/parse-claims.ts";
import { trustPolicy } from "../../src/contract/people/trust-policy.ts";

const issuer = "https://token.actions.githubusercontent.com";
const trust = trustPolicy.parse({
  issuers: [{ issuer, audience: "https://mos.example" }],
  policies: [
    {
      name: "main",
      issuer,
      project: "vision",
      claims: { repository_owner_id: 45, repository_id: 123, ref: "refs/heads/main" },
      scopes: ["jobs:write"],
    },
  ],
});
const pushed = {
  iss: issuer,
  aud: "https://mos.example",
  repository_owner_id: "45",
  repository_id: "123",
  ref: "refs/heads/main",
};

test("checkClaims() says which token a workflow would get", () => {
  assert.deepEqual(checkClaims(trust, pushed), {
    grant: { policy: "main", project: "vision", scopes: ["jobs:write"], expiresInSeconds: 3600 },
    mismatch: null,
  });
});

for (const [claim, value] of [
  ["iss", "https://evil.example"],
  ["aud", "https://other.example"],
  ["repository_owner_id", "46"],
  ["ref", "refs/pull/7/merge"],
] as const) {
  test(`checkClaims() names the claim ${claim} where it does not fit`, () => {
    const answer = checkClaims(trust, { ...pushed, [claim]: value });
    assert.deepEqual(answer, { grant: null, mismatch: claim });
  });
}
