import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import test from "node:test";

const script = join(import.meta.dirname, "../../scripts/verify.ts");
const [file, none] = [join(import.meta.dirname, "../../package.json"), "none.json"];

for (const [args, status, sentence] of [
  [[], 2, "REPORT is missing"],
  [[none], 2, "There is nothing to verify: give --model, or --attestations and --key"],
  [[none, "--key", file], 2, "--attestations and --key need each other"],
  [
    [none, "--model", file],
    1,
    /^Not verified: ENOENT: no such file or directory, open 'none.json'$/,
  ],
  [
    [file, "--model", file],
    1,
    "Refused: The report cannot be read: job is missing and must be a string",
  ],
] as const) {
  test(`verify.ts ${args.join(" ")} says what is wrong, without a stack`, () => {
    const ended = spawnSync(process.execPath, [script, ...args], { encoding: "utf8" });
    assert.equal(ended.status, status);
    const [first, second] = ended.stderr.split("\n");
    if (typeof sentence === "string") assert.equal(first, sentence);
    else assert.match(first ?? "", sentence);
    assert.match(second ?? "", status === 2 ? /^Usage: npm run verify/ : /^$/);
  });
}
