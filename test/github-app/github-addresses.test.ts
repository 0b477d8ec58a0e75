import assert from "node:assert/strict";
import test from "node:test";
import { findWebUrl, isIssuerOf } from "../../src/github-app/github-addresses.ts";

const gitHub = "https://api.github.com";
const enterprise = "https://github.example.com/api/v3";

const cases: readonly [api: string, issuer: string, isOwn: boolean][] = [
  [gitHub, "https://token.actions.githubusercontent.com", true],
  [gitHub, "https://token.actions.githubusercontent.com/octocat-inc", true],
  [gitHub, "https://token.actions.githubusercontent.com.evil.example", false],
  [gitHub, "https://github.example.com/_services/token", false],
  [enterprise, "https://github.example.com/_services/token", true],
  [enterprise, "https://github.example.com/_services/token/other", false],
  [enterprise, "https://token.actions.githubusercontent.com", false],
  ["https://api.octocorp.ghe.com", "https://token.actions.octocorp.ghe.com", true],
  ["https://api.octocorp.ghe.com", "https://token.actions.other.ghe.com", false],
];

for (const [api, issuer, isOwn] of cases) {
  test(`${issuer} is ${isOwn ? "the" : "no"} issuer of ${api}`, () => {
    assert.equal(isIssuerOf(api, issuer), isOwn);
  });
}

const webUrls = {
  [gitHub]: "https://github.com",
  [enterprise]: "https://github.example.com",
  "https://api.octocorp.ghe.com": "https://octocorp.ghe.com",
};

for (const [api, webUrl] of Object.entries(webUrls)) {
  test(`people see the GitHub of ${api} at ${webUrl}`, () => {
    assert.equal(findWebUrl(api), webUrl);
  });
}
