import assert from "node:assert/strict";
import test from "node:test";
import { isGlobMatch } from "../../src/contract/text/glob.ts";

for (const [glob, matching, others] of [
  [
    "refs/heads/*",
    ["refs/heads/", "refs/heads/a.b"],
    ["refs/heads/a/b", "refs/heads", "xrefs/heads/a"],
  ],
  ["refs/heads/**", ["refs/heads/a/b"], ["refs/tags/a"]],
  ["*/**/c", ["a/b/c", "a//c"], ["a/c", "/a/b"]],
  ["a***b", ["ab", "a/x/b"], ["a/x"]],
  ["a.b+(c)[d]$", ["a.b+(c)[d]$"], ["axb+(c)[d]$"]],
  ["**", ["", "a/b"], []],
  ["", [""], ["a"]],
  ["abab*", ["abab", "ababab"], ["ab/ab"]],
] as const) {
  test(`what "${glob}" matches`, () => {
    for (const value of matching) assert.ok(isGlobMatch(glob, value), value);
    for (const value of others) assert.ok(!isGlobMatch(glob, value), value);
  });
}

for (const [glob, value] of [
  ["a*a*a*a*b", "a".repeat(4000)],
  ["**/a/**/b/**/c", "/a/b".repeat(1000)],
  ["**-**-**-**x", "-".repeat(4000)],
] as const) {
  test(`"${glob}" is compared with a long value at once`, () => {
    const before = process.threadCpuUsage();
    assert.ok(!isGlobMatch(glob, value));
    assert.ok(process.threadCpuUsage(before).user < 500_000);
  });
}
