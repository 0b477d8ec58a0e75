import assert from "node:assert/strict";
import test from "node:test";
import { readStepLog } from "./step-log.ts";

test("commands of a step are taken, and what is stopped or masked is shown", () => {
  const { commands, visibleLines } = readStepLog(
    [
      "::add-mask::hunter2",
      "::error file=batch.yaml,line=3,title=a%2C b::50%25 of%0Atwo lines",
      "::group::A job",
      "::stop-commands::mark",
      "::error::of a model",
      "##[error]of a model",
      "The password is hunter2",
      "::mark::",
      "::endgroup::",
      "an old ##[warning]form",
      "a :: in the middle ::notice::",
      "",
    ].join("\r\n"),
  );
  assert.deepEqual(
    commands.map(({ command, message }) => [command, message]),
    [
      ["add-mask", "hunter2"],
      ["error", "50% of\ntwo lines"],
      ["group", "A job"],
      ["stop-commands", "mark"],
      ["endgroup", ""],
      ["warning", "form"],
    ],
  );
  assert.deepEqual(commands[1]?.properties, { file: "batch.yaml", line: "3", title: "a, b" });
  assert.deepEqual(visibleLines, [
    "A job",
    "::error::of a model",
    "##[error]of a model",
    "The password is ***",
    "a :: in the middle ::notice::",
  ]);
});
